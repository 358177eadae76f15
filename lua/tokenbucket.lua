-- token_bucket: a burst, then quota units in each window. It keeps the units that are missing from a full bucket, times the
-- window: quota of these come back in each tick, so that every number is whole. This is the law of GCRA, exact.
--
-- key                 the bucket
-- now                 ms since the Unix epoch
-- tick, window        ms; ticks
-- quota, cost, burst  units; cost ≤ burst
--
-- Value, big-endian:
--   0 u56 missing units · window   7 u48 tick of the newest unit   13 u32 window in ticks   17 u32 deadline
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function token_bucket(key, now, tick, window, quota, cost, burst)
  local t = (now - now % tick) / tick
  local capacity = burst * window
  local missing, skew, length, deadline = 0, 0, window, 0
  local state = redis.call('GET', key)
  if state and #state == 21 then
    local newest
    missing, newest, length, deadline = struct.unpack('>I7I6I4I4', state)
    if now >= deadline * 1000 + 1000 or newest - t > window then
      missing, length, deadline = 0, window, 0 -- beyond its deadline, or the clock has stepped back by more than a window
    else
      if t < newest then
        t, skew = newest, newest - t
      end
      if length ~= window then
        --include muldiv.lua
        local rest = missing % length
        missing = (missing - rest) / length * window + ceil_mul_div(rest, window, length)
      end
      -- Nobody waits for more than a full bucket, also after the burst was lowered.
      if missing > capacity then missing = capacity end
      missing = missing - (t - newest) * quota
      if missing < 0 then missing = 0 end
    end
  end

  local remaining, units = -1, cost > 0 and cost or 1
  if missing + units * window <= capacity then
    missing = missing + cost * window
    remaining = (capacity - missing - (capacity - missing) % window) / window
    units = remaining + 1
  end
  local wait = 0
  if missing > 0 then
    wait = (missing + units * window - capacity + quota - 1) / quota
    wait = (wait - wait % 1 + skew) * tick
  end
  if remaining >= 0 and cost == 0 then
    return remaining, wait
  end

  local life = (capacity + quota - 1) / quota
  life = life - life % 1
  local covered = deadline * 1000 - now
  if covered >= (remaining < 0 and wait or life * tick) then
    if remaining < 0 then
      return -1, wait
    elseif length == window then
      return remaining, wait, nil, nil, struct.pack('>I7I6', missing, t)
    end
    return remaining, wait, nil, nil, struct.pack('>I7I6I4', missing, t, window)
  end
  local ttl = (life + (window - window % 8) / 8) * tick + 1000
  if remaining < 0 then
    return -1, wait, nil, ttl, nil, '17', struct.pack('>I4', (now + ttl) / 1000)
  end
  return remaining, wait, struct.pack('>I7I6I4I4', missing, t, window, (now + ttl) / 1000), ttl
end
