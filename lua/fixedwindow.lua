-- fixed_window: the units of one window. Windows are aligned to the Unix epoch; refused hits are not counted.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
--
-- Value, u32 big-endian:
--   0 units   4 the window's number modulo 2^32   8 the window in ticks   12 deadline
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function fixed_window(key, now, tick, window, quota, cost)
  local M = 4294967296
  local t = (now - now % tick) / tick
  local elapsed = t % window
  local index = (t - elapsed) / window % M
  local count, rest, deadline, carried = 0, window - elapsed, 0, false
  local state = redis.call('GET', key)
  if state and #state == 16 then
    local counted, length, e, age
    count, counted, length, deadline = struct.unpack('>I4I4I4I4', state)
    e = t % length
    age = ((t - e) / length - counted) % M
    if now >= deadline * 1000 + 1000 or age > 0 and age < M - 1 then
      count, deadline = 0, 0
    elseif length ~= window then
      deadline, carried = 0, true -- what was counted in a window of another length falls into the present one
    elseif age == M - 1 then
      -- The clock has stepped back behind the counted window.
      index, rest = counted, window + window - elapsed
    end
  end

  local wait = rest * tick
  local covered = deadline * 1000 - now
  local ttl = (window + (window - window % 8) / 8) * tick + 1000
  if count + (cost > 0 and cost or 1) > quota then
    if carried then -- carried over again later, the units would count in a later window
      return -1, wait, struct.pack('>I4I4I4I4', count, index, window, (now + ttl) / 1000), ttl
    elseif covered < wait then
      return -1, wait, nil, ttl, nil, '12', struct.pack('>I4', (now + ttl) / 1000)
    end
    return -1, wait
  end
  if cost == 0 then
    return quota - count, count > 0 and wait or 0
  end
  count = count + cost
  if covered < window * tick then
    return quota - count, wait, struct.pack('>I4I4I4I4', count, index, window, (now + ttl) / 1000), ttl
  end
  return quota - count, wait, nil, nil, struct.pack('>I4', count)
end
