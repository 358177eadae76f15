-- ring_search finds the oldest unit of a sliding_log that is in the window at tick t, among those from number first to
-- number last, counted from 0, the oldest. The last one is. It returns the unit's number and its tick.
local function ring_search(key, size, tail, first, last, t, window)
  local function tick_of(i)
    local at = 20 + (tail + i) % size * 4
    return (struct.unpack('>I4', redis.call('GETRANGE', key, at, at + 3)))
  end
  local function in_window(i)
    return (t - tick_of(i)) % 4294967296 < window
  end
  -- Steps that double, since most often few units have left, then halves.
  local step = 4
  while first + step < last do
    if in_window(first + step) then
      last = first + step
    else
      first, step = first + step + 1, step * 2
    end
  end
  while first < last do
    local middle = (first + last - (first + last) % 2) / 2
    if in_window(middle) then
      last = middle
    else
      first = middle + 1
    end
  end
  return first, tick_of(first)
end
