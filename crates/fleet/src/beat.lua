-- One edge reports that it is there, and learns its share of the rate.
-- KEYS: the fleet's state, its edges. ARGV: the time for tests or '', the edge's name, its start, the last moment at which
-- this report counts, the share that it holds, the ledger that it knows, a number for a ledger that begins, and the times
-- after which an edge is away and after which it is forgotten.
-- Answers 0 and the time if the report is late; else 1, the time, the ledger's number, the share, the number of edges.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local name, run, limit, held, knows = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local silent, forget = tonumber(ARGV[8]), tonumber(ARGV[9])
if now > limit then return {0, now} end

local read = redis.call('HMGET', KEYS[1], 'v', 't', 'speed', 'until', 'born', 'reserved', 'began', 'was')
local state = {
  v = tonumber(read[1]), t = tonumber(read[2]), speed = tonumber(read[3]), till = tonumber(read[4]), born = read[5],
  reserved = tonumber(read[6]), began = tonumber(read[7]), was = read[8],
}
if not (state.v and state.t and state.speed and state.till and state.born and state.reserved and state.began) then
  state = { v = 0, t = now, speed = 0, till = now, born = ARGV[7], reserved = 0, began = now, was = '0' }
  redis.call('DEL', KEYS[2])
end

-- The fleet's time. After `till`, an edge may have gone that nobody has noticed.
state.v = state.v + state.speed * math.max(0, math.min(now, state.till) - state.t)
state.t = math.max(now, state.t)

local edges, others, count = {}, 0, 1
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  local beat, share = string.match(all[i + 1], '^(%d+) ([%d.]+) ')
  beat, share = tonumber(beat), tonumber(share)
  if not share or now - beat > forget then
    redis.call('HDEL', KEYS[2], all[i])
  elseif all[i] ~= name then
    edges[#edges + 1] = { beat = beat, share = share }
    others, count = others + share, count + 1
  end
end
if now - state.began > forget then state.reserved = 0 end

-- This edge knew another ledger, whose memory is gone: edges may be away.
if knows ~= '0' and knows ~= state.born and knows ~= state.was then
  state.was, state.began = knows, now
  state.reserved = math.max(state.reserved, 1 - held - others, 0)
elseif knows ~= '0' and knows ~= state.born and redis.call('HEXISTS', KEYS[2], name) == 0 then
  state.reserved = math.max(0, state.reserved - held)
end

local share = math.max(0, math.min(1 / count, 1 - others - state.reserved))
-- Until the edge has this answer, it may use the share that it holds.
local booked = math.max(share, held)

local away, till = state.reserved, now + silent
for _, edge in ipairs(edges) do
  if now - edge.beat >= silent then
    away = away + edge.share
  else
    till = math.min(till, edge.beat + silent)
  end
end
redis.call('HSET', KEYS[1], 'v', string.format('%.6f', state.v), 't', string.format('%d', state.t),
  'speed', string.format('%.9f', math.max(0, 1 - away)), 'until', string.format('%d', till), 'born', state.born,
 'reserved', string.format('%.9f', state.reserved),
  'began', string.format('%d', state.began), 'was', state.was or '0')
-- Last: if Redis refuses a write, the report is not counted.
redis.call('HSET', KEYS[2], name, string.format('%d %.9f %s', now, booked, run))
return {1, now, state.born, string.format('%.9f', share), count}
