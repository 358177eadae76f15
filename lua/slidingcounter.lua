-- sliding_counter: the units of the present window, and those of the one before it in proportion to how much of it the
-- sliding window still covers. Windows are aligned to the Unix epoch.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
-- counted       a hit that is refused spends what is free
--
-- Value, big-endian:
--   0 u24 units in the window of that number   3 u24 units in the window before it   6 u48 place
-- or, if either is larger:
--   0 u32 …                                    4 u32 …                               8 u64 place
-- where place is the windows' length in ticks times 2^18 and the window's number modulo 2^18.
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function sliding_counter(key, now, tick, window, quota, cost, _, counted)
  local M, LARGE = 262144, 16777216
  local t = (now - now % tick) / tick
  local elapsed = t % window
  local index = (t - elapsed) / window % M
  local cur, prev, skew, large, changed, carried = 0, 0, 0, false, true, false
  local state = call('GET', key)
  if state and #state >= 12 then
    local place
    large = #state % 6 == 4 -- 16 or, with a ban, 22 bytes
    if large then
      cur, prev, place = unpack('>I4I4I8', state)
    else
      cur, prev, place = unpack('>I3I3I6', state)
    end
    local number = place % M
    local length = (place - number) / M
    local e = t % length
    local age = ((t - e) / length - number) % M
    if age > 1 and age < M - 1 then
      cur, prev = 0, 0
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
        if cur > 4294967295 then cur = 4294967295 end
        prev, skew, carried = 0, 0, true
      elseif age ~= 1 then
        index, elapsed, changed = number, e, false
      end
    end
  end

  local remaining, units, spent = -1, cost > 0 and cost or 1, 0
  local free = (quota - cur) * window - prev * (window - elapsed)
  if free >= units * window then
    spent = cost
    cur, free = cur + cost, free - cost * window
    remaining = (free - free % window) / window
    if remaining == quota then
      return remaining, 0
    end
    units = remaining + 1
  elseif counted and free > 0 then
    spent = (free - free % window) / window
    cur = cur + spent
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

  if spent == 0 and not carried then
    return remaining, wait, remaining < 0 and skew > 0 and wait or nil
  elseif remaining >= 0 and cost == 0 then
    return remaining, wait
  end
  -- A window's first hit sees to the end of the next.
  local keep = (carried or changed or skew > 0) and (2 * window + skew) * tick or 0
  if cur >= LARGE or prev >= LARGE then
    if carried or changed or not large then
      return remaining, wait, keep, pack('>I4I4I8', cur, prev, window * M + index)
    end
    return remaining, wait, keep, nil, pack('>I4', cur)
  elseif carried or large or not state then
    return remaining, wait, keep, pack('>I3I3I6', cur, prev, window * M + index)
  elseif changed then
    return remaining, wait, keep, nil, pack('>I3I3I6', cur, prev, window * M + index)
  end
  return remaining, wait, keep, nil, pack('>I3', cur)
end
