-- sliding_log: the tick of each unit that passed, oldest first, in a ring. Exact in every window.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
-- counted       the newest units are kept, also if the hit is refused
--
-- Value, big-endian, u32 if nothing is said; ticks are modulo 2^32:
--    0 the key's expiry, as driver.lua says
--    4 five places: from the left copies of the oldest units, from the right the newest, which the ring need not have. A unit
--      may be among both; what is in a place between them counts for nothing.
--   24 u8, how many of the five are the newest, 1 … 4   25 u24, units
--   28 u8, how many are the oldest, 1 … 4, 0 if there is none   29 u24, the oldest's place in the ring
--   32 places in the ring
--   36 + 4·place   the tick of a unit
-- So most hits, of which one unit comes and one has left, shift the five by one place and touch the ring once in four times.
-- Units that have left the window stay until the next hit is spent. The ring doubles as it fills, and shrinks once three
-- quarters are empty.
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function sliding_log(key, now, tick, window, quota, cost, _, counted)
  local M, sub = 4294967296, string.sub
  local t = (now - now % tick) / tick % M
  local head, skew = call('GETRANGE', key, '0', '35'), 0
  if #head < 36 then head = string.rep('\0', 36) end
  local lives, oldest, second, _, newest, late, n, early, tail, size = unpack('>I4I4I4c8I4BI3BI3I4', head)
  local back = (newest - t) % M
  if late == 0 or early + late > 5 or n > size or size > 16777215 then
    n = 0 -- no value, or none of ours
  elseif back > window and back < 2147483648 then
    n = 0 -- the clock has stepped back by more than a window
  elseif back < 2147483648 then
    t, skew = newest, back
  elseif M - back >= window then
    n = 0
  end
  lives = lives * 1000 - now -- for as many ms, unless the expiry was set by another clock, or for a longer window
  if skew > 0 or lives > window * tick * 1.125 + 1000 then lives = 0 end

  local known, at = head, 5 -- what tells the oldest units, and where
  if n > 1 and (t - oldest) % M >= window then -- skip the units that have left the window, most often few; the newest is in it
    local gone = 0
    repeat
      gone, early, at = gone + 1, early - 1, at + 4
      if early > 0 then
        oldest = gone > 1 and unpack('>I4', known, at) or second
      else
        if gone > 8 then
          --include ringsearch.lua
          gone = ring_search(key, size, tail, gone, n - late, t, window)
        end
        --include ringlook.lua
      end
    until gone >= n - 1 or (t - oldest) % M < window
    tail, n = (tail + gone) % size, n - gone
    if late > n then late = n end
  end

  local short = n + (cost > 0 and cost or 1) - quota
  if short > 0 and not counted then
    local leaves = oldest
    if short > n - late then
      leaves = unpack('>I4', head, 25 - (n - short + 1) * 4)
    elseif short > 1 then
      local offset = 36 + (tail + short - 1) % size * 4
      leaves = unpack('>I4', call('GETRANGE', key, offset, offset + 3))
    end
    local wait = (window - (t - leaves) % M + skew) * tick
    return -1, wait, lives >= wait and 0 or wait
  elseif short > 0 then -- the oldest make room
    local gone = short
    if gone < n then
      --include ringlook.lua
    end
    tail, n = (tail + gone) % size, n - gone
    if late > n then late = n end
  end

  if n == 0 then oldest = t end
  local units, reset = n + cost, (window - (t - oldest) % M + skew) * tick
  local remaining, keep = quota - units, (window + skew) * tick
  if cost == 0 then
    return remaining, n > 0 and reset or 0
  elseif short > 0 then
    remaining = -1
  end

  if n == 0 or units > size or size > 8 and units * 4 <= size then
    local live = ''
    if n > late then
      --include ringcopy.lua
      live = ring_copy(key, 36, 4, size, tail, n - late)
    end
    if n > 0 then live = live .. sub(head, 25 - late * 4, 24) end
    live = live .. string.rep(pack('>I4', t), cost)
    size = 8
    while size < units do size = size * 2 end
    if size > quota then size = quota end
    local ring = live .. string.rep('\0', (size - units) * 4)
    return remaining, reset, keep, sub(ring, 1, 16) .. string.rep('\0', 16 - size * 4)
      .. pack('>I4BI3BI3I4', t, 1, units, units < 4 and units or 4, 0, size) .. ring
  end

  if lives >= keep then keep = 0 end
  if cost == 1 and late < 4 then
    late = late + 1
    local five -- without the newest
    if at == 9 and known == head then -- one unit has left: all move by a place
      five = sub(head, 9, 24)
    else
      five = sub(known, at, at + 19 - late * 4)
      five = five .. string.rep('\0', 20 - late * 4 - #five) .. sub(head, 29 - late * 4, 24)
    end
    if early > 5 - late then early = 5 - late end
    return remaining, reset, keep, nil, five .. pack('>I4BI3BI3', t, late, units, early, tail)
  end
  -- The newest go to the ring.
  local place, part, four = (tail + n - late) % size, sub(head, 25 - late * 4, 24), sub(known, at, at + 15)
  if cost > 1 then part = part .. string.rep(pack('>I4', t), cost - 1) end
  local fits = (size - place) * 4
  head = four .. string.rep('\0', 16 - #four) .. pack('>I4BI3BI3I4', t, 1, units, early, tail, size)
  -- What is beyond its end goes to its beginning, right behind the head.
  return remaining, reset, keep, nil, head .. sub(part, fits + 1), 36 + place * 4, sub(part, 1, fits)
end
