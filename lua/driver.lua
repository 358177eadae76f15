-- Decides the hits of one request at one instant. The enforced hits are spent all or none; each shadow hit is decided and
-- spent on its own.
--
-- KEYS[i]  the bucket of hit i; no two of them are the same
-- ARGV[1]  the hits, 22 bytes each, big-endian:
--            u8   algorithm: 1 sliding_log, 2 grouped_log, 3 sliding_counter, 4 token_bucket, 5 fixed_window
--            u8   1 for a shadow hit, else 0
--            u32  tick in ms: the unit of time in which the bucket counts
--            u32  window in ticks, 1 … 2^30
--            u32  quota in units; quota·window < 2^51, but for token_bucket
--            u32  burst in units, token_bucket only; burst·window < 2^51
--            u32  cost in units; 0 asks whether one more unit would pass, and spends nothing
-- ARGV[2]  now in ms since the Unix epoch; without it the clock of Redis
--
-- Reply: two integers for each hit
--   remaining ≥ 0, reset   allowed: the units left after the hit, and the ms until more come; 0 when the bucket is full.
--                          If an enforced hit was refused, those that would have passed say what is left unspent.
--   -1, wait               refused: the ms after which the hit passes if nothing else is spent
--   -2, 0                  refused: the hit can never pass
--
-- Numbers are whole and below 2^53, so that they are exact. All keys are read before one is written, and no other key is
-- touched. Each algorithm returns remaining and reset or wait, as in the reply, and then what there is to write:
--   whole  the new value of the key
--   ttl    the ms after which the key is to expire; nil leaves its expiry alone
--   head   or, instead of whole: what to write at the value's beginning
--   at     and an offset
--   part   and what to write there
-- Every value holds its deadline: the Unix second, rounded down, in which its key expires. So a key's expiry is renewed
-- only once it no longer covers the bucket's lifetime, and a value beyond its deadline counts as missing. (struct.pack drops
-- fractions.)

-- take decides hit i and all after it, and writes what is to be written once all of them are decided. It returns whether
-- an enforced hit was refused.
local function take(i, now, reply, refused)
  local algorithm, shadow, tick, window, quota, burst, cost = struct.unpack('>BBI4I4I4I4I4', ARGV[1], i * 22 - 21)
  local key = KEYS[i]
  local remaining, wait, whole, ttl, head, at, part = -2, 0
  -- Redis runs all of this text for every call: only the function that is needed is made.
  local decide
  if quota == 0 or cost > (algorithm == 4 and burst or quota) then
    decide = nil
  elseif algorithm == 1 then
    --include slidinglog.lua
    decide = sliding_log
  elseif algorithm == 2 then
    --include groupedlog.lua
    decide = grouped_log
  elseif algorithm == 3 then
    --include slidingcounter.lua
    decide = sliding_counter
  elseif algorithm == 4 then
    --include tokenbucket.lua
    decide = token_bucket
  elseif algorithm == 5 then
    --include fixedwindow.lua
    decide = fixed_window
  else
    error('unknown algorithm ' .. algorithm)
  end
  if decide then
    remaining, wait, whole, ttl, head, at, part = decide(key, now, tick, window, quota, cost, burst)
  end

  local enforced = shadow == 0
  refused = refused or enforced and remaining < 0
  if KEYS[i + 1] then
    refused = take(i + 1, now, reply, refused)
  end
  if refused and enforced and remaining >= 0 then
    remaining, wait = decide(key, now, tick, window, quota, 0, burst)
  elseif whole and ttl then
    redis.call('SET', key, whole, 'PX', ttl)
  elseif whole then
    redis.call('SET', key, whole, 'KEEPTTL')
  else
    if part then redis.call('SETRANGE', key, at, part) end
    if head then redis.call('SETRANGE', key, '0', head) end
    if ttl then redis.call('PEXPIRE', key, ttl) end
  end
  reply[2 * i - 1], reply[2 * i] = remaining, wait
  return refused
end

local now = tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
end
local reply = {0, 0}
take(1, now, reply, false)
return reply
