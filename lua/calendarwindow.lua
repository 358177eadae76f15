-- fixed_window of a calendar: the units of one day, week, month or year. The caller knows the calendar.
--
-- key          the bucket
-- now          ms since the Unix epoch
-- quota, cost  units; cost ≤ quota
-- windows      where in requests the times stand between which the windows lie
-- counted      a hit that is refused spends what is free
--
-- Value, u32 big-endian:
--   0 units   4 the Unix second in which their window began   8 its length in seconds
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says; -4 if now lies in none of the windows.
-- It is -4 too if the clock has stepped back into the last of them, and the units are counted in the one after it.
local function calendar_window(key, now, _, _, quota, cost, windows, counted)
  local _, begins, ends, following, last = numbers(requests, 4, windows)
  local second = (now - now % 1000) / 1000
  if second < begins or second >= last then
    return -4
  elseif second >= following then
    begins, ends, following = following, last, nil
  elseif second >= ends then
    begins, ends, following = ends, following, last
  end

  local count, whole, carried = 0, true, false
  local state = call('GET', key)
  if state and #state >= 12 then
    local began, length
    count, began, length = unpack('>I4I4I4', state)
    if second >= began + length or second < began and began ~= ends then
      count = 0 -- its time is over, or the clock has stepped back by more than a window
    else
      if second < began then -- the clock has stepped back behind the counted window
        if not following then return -4 end
        begins, ends = ends, following
      end
      carried = began ~= begins or length ~= ends - begins -- from another calendar's window into this one
      whole = carried
    end
  end

  local wait, remaining, spent = ends * 1000 - now, quota - count - cost, cost
  if count + (cost > 0 and cost or 1) > quota then
    remaining, spent = -1, counted and count < quota and quota - count or 0
  end
  count = count + spent
  if spent == 0 and not (carried and remaining < 0) then
    return remaining, count > 0 and wait or 0, remaining < 0 and wait or nil
  elseif whole then
    return remaining, wait, wait, pack('>I4I4I4', count, begins, ends - begins)
  end
  return remaining, wait, wait, nil, pack('>I4', count)
end
