-- sliding_log: the tick of each unit that passed, oldest first, in a ring. Exact in every window.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
-- counted       the newest units are kept, also if the hit is refused
--
-- Value, u32 big-endian; ticks are modulo 2^32:
--   0 the key's expiry, as driver.lua says   4 newest tick   8 units   12 place of the oldest   16 places in the ring
--   20 a copy of four places, from the last multiple of four up to the oldest's on: most often the next to leave are there.
--      In it and in the ring, what is before the oldest, behind the newest or beyond the ring counts for nothing.
--   36 + 4·place    the tick of a unit
-- Units that have left the window stay until the next hit is spent. The ring doubles as it fills, and shrinks once three
-- quarters are empty.
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function sliding_log(key, now, tick, window, quota, cost, _, counted)
  local M = 4294967296
  local t = (now - now % tick) / tick % M
  local lives, newest, n, tail, oldest, size, skew = 0, t, 0, 0, t, 0, 0
  local four, at, moved = call('GETRANGE', key, '0', '35'), 21, false -- the copy, where it begins, whether it is another now
  if #four == 36 then
    lives, newest, n, tail, size = unpack('>I4I4I4I4I4', four)
    local back = (newest - t) % M
    if n > size then
      n = 0 -- no value of ours
    elseif back > window and back < 2147483648 then
      n = 0 -- the clock has stepped back by more than a window
    elseif back < 2147483648 then
      t, skew = newest, back
    elseif M - back >= window then
      n = 0
    end
    lives = lives * 1000 - now -- for as many ms, unless the expiry was set by another clock, or for a longer window
    if skew > 0 or lives > window * tick * 1.125 + 1000 then lives = 0 end
  end

  if n > 0 then -- skip the units that have left the window, most often few; the newest is in it
    oldest = unpack('>I4', four, 21 + tail % 4 * 4)
    local gone, most = 0, n - 1
    while gone < most and (t - oldest) % M >= window do
      gone = gone + 1
      local place = (tail + gone) % size
      if place % 4 == 0 then
        if gone > 8 then
          --include ringsearch.lua
          gone = ring_search(key, size, tail, gone, most, t, window)
          place, most = (tail + gone) % size, gone
        end
        local offset = 36 + (place - place % 4) * 4
        four, at, moved = call('GETRANGE', key, offset, offset + 15), 1, true
      end
      oldest = unpack('>I4', four, at + place % 4 * 4)
    end
    tail, n = (tail + gone) % size, n - gone
  end

  local short = n + (cost > 0 and cost or 1) - quota
  if short > 0 and not counted then
    local leaves = oldest
    if short > 1 then
      local offset = 36 + (tail + short - 1) % size * 4
      leaves = unpack('>I4', call('GETRANGE', key, offset, offset + 3))
    end
    local wait = (window - (t - leaves) % M + skew) * tick
    return -1, wait, lives >= wait and 0 or wait
  elseif short > 0 then -- the oldest make room
    tail, n = (tail + short) % size, n - short
    local offset = 36 + (tail - tail % 4) * 4
    four, at, moved = call('GETRANGE', key, offset, offset + 15), 1, true
    oldest = n > 0 and unpack('>I4', four, 1 + tail % 4 * 4) or t
  end

  local units = n + cost
  if n == 0 then oldest = t end
  local remaining, reset = quota - units, units > 0 and (window - (t - oldest) % M + skew) * tick or 0
  if cost == 0 then
    return remaining, reset
  elseif short > 0 then
    remaining = -1
  end
  local keep, entry = (window + skew) * tick, pack('>I4', t)

  if n == 0 or units > size or size > 8 and units * 4 <= size then
    local live = ''
    if n > 0 then
      --include ringcopy.lua
      live = ring_copy(key, 36, 4, size, tail, n)
    end
    size = 8
    while size < units do size = size * 2 end
    if size > quota then size = quota end
    local ring = live .. string.rep(entry, cost) .. string.rep('\0', (size - units) * 4)
    local copy = size < 4 and ring .. string.rep('\0', 16 - size * 4) or string.sub(ring, 1, 16)
    return remaining, reset, keep, pack('>I4I4I4I4', t, units, 0, size) .. copy .. ring
  end

  if lives >= keep then keep = 0 end
  local place, known = (tail + n) % size, tail % 4 + n
  local fits, copy = size - place, nil
  if known < 4 then
    copy = string.sub(four, at, at + known * 4 - 1) .. string.rep(entry, 4 - known)
  elseif moved or cost > fits then
    copy = string.sub(four, at, at + 15)
  end
  if cost > fits then -- the rest goes to the ring's beginning, right behind the copy
    return remaining, reset, keep, nil, pack('>I4I4I4I4', t, units, tail, size) .. copy .. string.rep('\0', 16 - #copy)
      .. string.rep(entry, cost - fits), 36 + place * 4, string.rep(entry, fits)
  end
  local head = copy and pack('>I4I4I4I4', t, units, tail, size) .. copy or pack('>I4I4I4', t, units, tail)
  return remaining, reset, keep, nil, head, 36 + place * 4, cost == 1 and entry or string.rep(entry, cost)
end
