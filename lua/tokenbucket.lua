-- token_bucket: a burst, then quota units in each window. It keeps the units that are missing from a full bucket, times the
-- window: quota of these come back in each tick, so that every number is whole. This is the law of GCRA, exact.
--
-- key                 the bucket
-- now                 ms since the Unix epoch
-- tick, window        ms; ticks
-- quota, cost, burst  units; cost ≤ burst
-- counted             a hit that is refused empties the bucket
--
-- Value, big-endian:
--   0 u40 missing units · window   5 u32 tick of the newest unit, modulo 2^32    9 u24 window in ticks
-- or, for larger limits:
--   0 u64 …                        8 u64 the tick itself                        16 u32 …
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function token_bucket(key, now, tick, window, quota, cost, burst, counted)
  local t = (now - now % tick) / tick
  local capacity = burst * window
  local large = capacity >= 1099511627776 or window >= 16777216 or capacity >= quota * 2147483648
  local missing, skew, length, whole = 0, 0, window, true
  local state = call('GET', key)
  if state and #state >= 12 then
    local newest, back
    if #state >= 20 then
      missing, newest, length = unpack('>I8I8I4', state)
      back = newest - t
    else
      missing, newest, length = unpack('>I5I4I3', state)
      back = (newest - t) % 4294967296
      if back >= 2147483648 then back = back - 4294967296 end
    end
    whole = large ~= (#state >= 20)
    if back > window then
      missing, length = 0, window -- the clock has stepped back by more than a window
    else
      if length ~= window then
        --include muldiv.lua
        local rest = missing % length
        missing = (missing - rest) / length * window + ceil_mul_div(rest, window, length)
      end
      -- Nobody waits for more than a full bucket, also after the burst was lowered.
      if missing > capacity then missing = capacity end
      if back > 0 then
        t, skew = t + back, back
      else
        missing = missing + back * quota
        if missing < 0 then missing = 0 end
      end
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
  if remaining < 0 and not counted then
    return -1, wait, wait
  elseif cost == 0 then
    return remaining, wait
  elseif remaining < 0 then
    missing = capacity
  end

  local life = (capacity + quota - 1) / quota
  local keep = (life - life % 1 + skew) * tick
  local value
  if large then
    value = pack('>I8I8I4', missing, t, window)
  else
    value = pack('>I5I4I3', missing, t % 4294967296, window)
  end
  if whole then
    return remaining, wait, keep, value
  end
  return remaining, wait, keep, nil, value
end
