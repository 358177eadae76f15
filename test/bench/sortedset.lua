-- The usual sliding log: a sorted set of hits by time.
-- KEYS: the bucket. ARGV: now in ms, window in ms, quota, a member that no other hit has.
-- Returns allowed (0 or 1), remaining, and the ms until the same hit can pass.
local now, window, quota = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local held = redis.call('ZCARD', KEYS[1])
if held < quota then
  redis.call('ZADD', KEYS[1], now, ARGV[4])
  redis.call('PEXPIRE', KEYS[1], window)
  return {1, quota - held - 1, 0}
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {0, 0, oldest[2] + window - now}
