-- sliding_log: the tick of each unit that passed, oldest first, in a ring. Exact in every window.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
-- counted       the newest units are kept, also if the hit is refused
--
-- Value, u32 big-endian; ticks are modulo 2^32:
--   0 newest tick   4 units   8 place of the oldest   12 its tick   16 places in the ring
--   20 + 4·place    the tick of a unit
-- Units that have left the window stay until the next hit is spent. The ring doubles as it fills, and shrinks once three
-- quarters are empty.
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function sliding_log(key, now, tick, window, quota, cost, _, counted)
  local M = 4294967296
  local t = (now - now % tick) / tick % M
  local newest, n, tail, oldest, size, skew = t, 0, 0, t, 0, 0
  local state = redis.call('GETRANGE', key, '0', '51')
  if #state >= 20 then
    newest, n, tail, oldest, size = struct.unpack('>I4I4I4I4I4', state)
    local back = (newest - t) % M
    if back > window and back < 2147483648 then
      n = 0 -- the clock has stepped back by more than a window
    elseif back < 2147483648 then
      t, skew = newest, back
    elseif M - back >= window then
      n = 0
    end
  end

  -- Skip the units that have left the window: most often few, so that the next four are read at once. The newest is in it.
  if n > 0 and (t - oldest) % M >= window then
    local place = (tail + 1) % size
    local count = n - 1
    if count > 4 then count = 4 end
    if count > size - place then count = size - place end
    local chunk, at = state, 21 + place * 4
    if place + count > 8 then
      chunk, at = redis.call('GETRANGE', key, 20 + place * 4, 19 + (place + count) * 4), 1
    end
    local gone = 1
    oldest, at = struct.unpack('>I4', chunk, at)
    while gone < count and (t - oldest) % M >= window do
      gone = gone + 1
      oldest, at = struct.unpack('>I4', chunk, at)
    end
    if (t - oldest) % M >= window then
      --include ringsearch.lua
      gone, oldest = ring_search(key, size, tail, gone + 1, n - 1, t, window)
    end
    tail, n = (tail + gone) % size, n - gone
  end
  if n == 0 then oldest = t end

  local short = n + (cost > 0 and cost or 1) - quota
  if short > 0 and not counted then
    local leaves = oldest
    if short > 1 then
      local offset = 20 + (tail + short - 1) % size * 4
      leaves = struct.unpack('>I4', redis.call('GETRANGE', key, offset, offset + 3))
    end
    local wait = (window - (t - leaves) % M + skew) * tick
    return -1, wait, wait
  elseif short > 0 then -- the oldest make room
    tail, n = (tail + short) % size, n - short
    oldest = n > 0 and struct.unpack('>I4', redis.call('GETRANGE', key, 20 + tail * 4, 23 + tail * 4)) or t
  end

  local units = n + cost
  local remaining, reset = quota - units, units > 0 and (window - (t - oldest) % M + skew) * tick or 0
  if cost == 0 then
    return remaining, reset
  elseif short > 0 then
    remaining = -1
  end
  local keep, entry = (window + skew) * tick, struct.pack('>I4', t)

  if n == 0 or units > size or size > 8 and units * 4 <= size then
    local live = ''
    if n > 0 then
      --include ringcopy.lua
      live = ring_copy(key, 20, 4, size, tail, n)
    end
    size = 8
    while size < units do size = size * 2 end
    if size > quota then size = quota end
    return remaining, reset, keep, struct.pack('>I4I4I4I4I4', t, units, 0, oldest, size)
      .. live .. string.rep(entry, cost) .. string.rep('\0', (size - units) * 4)
  end

  local place = (tail + n) % size
  local count = size - place
  if cost > count then -- the rest goes to the ring's beginning, right behind the header
    return remaining, reset, keep, nil, struct.pack('>I4I4I4I4I4', t, units, tail, oldest, size) .. string.rep(entry, cost - count),
      20 + place * 4, string.rep(entry, count)
  end
  return remaining, reset, keep, nil, struct.pack('>I4I4I4I4', t, units, tail, oldest),
    20 + place * 4, cost == 1 and entry or string.rep(entry, cost)
end
