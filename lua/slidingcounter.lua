-- sliding_counter: the units of the present window, and those of the one before it in proportion to how much of it the
-- sliding window still covers. Windows are aligned to the Unix epoch.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
--
-- Value, u32 big-endian:
--   0 units in the window of that number   4 units in the window before it   8 the window's number modulo 2^32
--   12 the window in ticks   16 deadline
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function sliding_counter(key, now, tick, window, quota, cost)
  local M = 4294967296
  local t = (now - now % tick) / tick
  local elapsed = t % window
  local index = (t - elapsed) / window % M
  local cur, prev, skew, deadline, changed, carried = 0, 0, 0, 0, true, false
  local state = redis.call('GET', key)
  if state and #state == 20 then
    local counted, length, e, age
    cur, prev, counted, length, deadline = struct.unpack('>I4I4I4I4I4', state)
    e = t % length
    age = ((t - e) / length - counted) % M
    if now >= deadline * 1000 + 1000 or age > 1 and age < M - 1 then
      cur, prev, deadline = 0, 0, 0
    else
      if age == 1 then
        cur, prev = 0, cur
      elseif age == M - 1 then -- the clock has stepped back behind the counted window
        skew, e = length - e, 0
      end
      if length ~= window then
        -- What was counted in windows of another length falls into the present window as the estimate of this moment.
        --include muldiv.lua
        cur = cur + ceil_mul_div(prev, length - e, length)
        if cur >= M then cur = M - 1 end
        prev, skew, deadline, carried = 0, 0, 0, true
      elseif age ~= 1 then
        index, elapsed, changed = counted, e, false
      end
    end
  end

  local remaining, units = -1, cost > 0 and cost or 1
  local free = (quota - cur) * window - prev * (window - elapsed)
  if free >= units * window then
    cur = cur + cost
    free = free - cost * window
    remaining = (free - free % window) / window
    if remaining == quota then
      return remaining, 0
    end
    units = remaining + 1
  end

  -- The wait for units that do not pass now: this window's rest less the time in which the previous count need not decay,
  -- or one window more and what is then the previous count.
  local wait, room, spare = window - elapsed + skew, quota - units, nil
  if cur <= room then
    spare = (room - cur) * window / prev
  else
    spare = room * window / cur
    wait = wait + window
  end
  wait = (wait - (spare - spare % 1)) * tick

  local covered = deadline * 1000 - now
  local ttl = (2 * window + (window - window % 8) / 8) * tick + 1000
  if remaining < 0 then
    if carried then -- carried over again later, the units would count in a later window
      return -1, wait, struct.pack('>I4I4I4I4I4', cur, 0, index, window, (now + ttl) / 1000), ttl
    elseif covered < wait then
      return -1, wait, nil, ttl, nil, '16', struct.pack('>I4', (now + ttl) / 1000)
    end
    return -1, wait
  end
  if cost == 0 then
    return remaining, wait
  elseif covered < 2 * window * tick then
    return remaining, wait, struct.pack('>I4I4I4I4I4', cur, prev, index, window, (now + ttl) / 1000), ttl
  elseif changed then
    return remaining, wait, nil, nil, struct.pack('>I4I4I4', cur, prev, index)
  end
  return remaining, wait, nil, nil, struct.pack('>I4', cur)
end
