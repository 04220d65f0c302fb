-- One edge reports that it is there, and learns its share of the rate.
-- KEYS: the fleet's state, its edges. ARGV: the time for tests or '', the edge's name, its start, the last moment at which
-- this report counts, the share that it holds or 0, its part of the reserve, and the times after which an edge is away and
-- after which it is forgotten.
-- Answers 0 and the time if the report is late; else 1, the time, the share, the number of edges.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local name, run, limit, held, part = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local silent, forget = tonumber(ARGV[7]), tonumber(ARGV[8])
if now > limit then return {0, now} end

local read = redis.call('HMGET', KEYS[1], 'v', 't', 'speed', 'until', 'reserved', 'began')
local v, t, speed = tonumber(read[1]), tonumber(read[2]), tonumber(read[3])
local till, reserved, began = tonumber(read[4]), tonumber(read[5]), tonumber(read[6])
if not (v and t and speed and till and reserved and began) then
  -- A ledger begins. Edges that it does not know may be away, with shares that an earlier one told them.
  v, t, speed, till, reserved, began = 0, now, 0, now, 1, now
  redis.call('DEL', KEYS[2])
end

-- The fleet's time. After `till`, an edge may have gone that nobody has noticed.
v = v + speed * math.max(0, math.min(now, till) - t)
t = math.max(now, t)

local edges, others, count, is_known = {}, 0, 1, false
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  local beat, booked = string.match(all[i + 1], '^(%d+) ([%d.]+) ')
  beat, booked = tonumber(beat), tonumber(booked)
  if all[i] == name then
    is_known = true
  elseif not booked or now - beat > forget then
    redis.call('HDEL', KEYS[2], all[i])
  else
    edges[#edges + 1] = { beat = beat, share = booked }
    others, count = others + booked, count + 1
  end
end
if not is_known then reserved = math.max(0, reserved - part) end
if now - began > forget then reserved = 0 end

local share = math.max(0, math.min(1 / count, 1 - others - reserved))
-- Until the edge has this answer, it may use the share that it holds.
local booked = math.max(share, held)

local away = reserved
till = now + silent
for _, edge in ipairs(edges) do
  if now - edge.beat >= silent then
    away = away + edge.share
  else
    till = math.min(till, edge.beat + silent)
  end
end
redis.call('HSET', KEYS[1], 'v', string.format('%.6f', v), 't', string.format('%d', t),
  'speed', string.format('%.9f', math.max(0, 1 - away)), 'until', string.format('%d', till),
  'reserved', string.format('%.9f', reserved), 'began', string.format('%d', began))
-- Last: if Redis refuses a write, the report is not counted.
redis.call('HSET', KEYS[2], name, string.format('%d %.9f %s', now, booked, run))
return {1, now, string.format('%.9f', share), count}
