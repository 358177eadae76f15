-- fixed_window: the units of one window. Windows are aligned to the Unix epoch; refused hits are not counted, unless they are
-- to be.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
-- counted       a hit that is refused spends what is free
--
-- Value, big-endian:
--   0 u32 units   4 u64 the window's length in ticks times 2^18, and its number modulo 2^18
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function fixed_window(key, now, tick, window, quota, cost, _, counted)
  local M = 262144
  local t = (now - now % tick) / tick
  local elapsed = t % window
  local index = (t - elapsed) / window % M
  local count, rest, whole = 0, window - elapsed, true
  local state = call('GET', key)
  local carried = false
  if state and #state >= 12 then
    local place
    count, place = unpack('>I4I8', state)
    local number = place % M
    local length = (place - number) / M
    local e = t % length
    local age = ((t - e) / length - number) % M
    if age > 0 and age < M - 1 then
      count = 0
    elseif length ~= window then
      carried = true -- what was counted in a window of another length falls into the present one
    else
      whole = false
      if age == M - 1 then -- the clock has stepped back behind the counted window
        index, rest = number, window + window - elapsed
      end
    end
  end

  local wait, remaining, spent = rest * tick, quota - count - cost, cost
  if count + (cost > 0 and cost or 1) > quota then
    remaining, spent = -1, counted and count < quota and quota - count or 0
  end
  count = count + spent
  if spent == 0 and not (carried and remaining < 0) then -- carried over again later, the units would count in a later window
    return remaining, count > 0 and wait or 0, remaining < 0 and rest > window and wait or nil
  end
  if whole then
    return remaining, wait, window * tick, pack('>I4I8', count, window * M + index)
  end
  return remaining, wait, rest > window and wait or 0, nil, pack('>I4', count) -- the window's first hit has seen to its end
end
