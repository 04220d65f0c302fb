-- Takes the debts of an edge into the buckets of keys, as far as they have room.
-- KEYS: the fleet's state, buckets. ARGV: the time for tests or '', then for each bucket its rate, its capacity and the
-- debt, in thousandths of a request.
-- Answers 0 if there is no ledger; else 1, the time, and for each bucket the accepted part and how full it is.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local read = redis.call('HMGET', KEYS[1], 'v', 't', 'speed', 'until')
local v, t, speed, till = tonumber(read[1]), tonumber(read[2]), tonumber(read[3]), tonumber(read[4])
if not (v and t and speed and till) then return {0} end
v = v + speed * math.max(0, math.min(now, till) - t)

local answer = {1, now}
for i = 2, #KEYS do
  local at = 3 * i - 4
  local rate, capacity, debt = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local level, seen = string.match(redis.call('GET', KEYS[i]) or '', '^(%d+) ([%d.]+)$')
  level, seen = tonumber(level), tonumber(seen)
  -- Nothing is known of it, or it is of an earlier ledger: it was full when this ledger began. (A time that was written is
  -- rounded.)
  if not seen or seen > v + 1 then
    level, seen = capacity, 0
  end
  local leaked = math.floor(rate * math.max(0, v - seen) / 1000)
  if leaked >= level then
    level, seen = 0, v
  elseif leaked > 0 then
    level, seen = level - leaked, seen + leaked * 1000 / rate
  end
  local taken = math.max(0, math.min(debt, capacity - level))
  level = level + taken
  if level > 0 then
    -- The fleet's time passes more slowly while edges are away: longer than the time in which it is empty.
    local lives = math.min(math.ceil(level * 4000 / rate) + 10000, 31536000000)
    redis.call('SET', KEYS[i], string.format('%d %.6f', level, seen), 'PX', string.format('%d', lives))
  end
  answer[#answer + 1] = taken
  answer[#answer + 1] = level
end
return answer
