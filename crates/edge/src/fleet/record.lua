-- Writes one record, unless a later one is there.
-- KEYS: the records of a space, the stream of changes. ARGV: the time for tests or '', the space's name, the key, when the
-- change was made or 0 for now, the edge's name, + for a value and - for its removal, the value, about how many changes
-- the stream keeps.
-- Answers 1 if the record is written; else 0 and the record that is there.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local key, made, edge = ARGV[3], tonumber(ARGV[4]), ARGV[5]
if made == 0 or made > now then made = now end
local known = redis.call('HGET', KEYS[1], key)
local stamp, writer = string.match(known or '', '^(%d+) (%S+) ')
stamp = tonumber(stamp)
if stamp and (stamp > made or stamp == made and writer > edge) then return {0, known} end
local record = string.format('%d', made) .. ' ' .. edge .. ' ' .. ARGV[6] .. ARGV[7]
redis.call('HSET', KEYS[1], key, record)
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[8], '*', 's', ARGV[2], 'k', key, 'r', record)
return {1}
