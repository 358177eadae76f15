-- ring_search finds the oldest unit of a sliding_log that is in the window at tick t, among those from number first to the one
-- before last, counted from 0, the oldest, all of which are in the ring. It returns the unit's number, or last if all have left.
local function ring_search(key, size, tail, first, last, t, window)
  local function in_window(i)
    local at = 36 + (tail + i) % size * 4
    return (t - unpack('>I4', call('GETRANGE', key, at, at + 3))) % 4294967296 < window
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
  return first
end
