-- sliding_log: the tick of each unit that passed, oldest first, in a ring. Exact in every window.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
--
-- Value, u32 big-endian; ticks are modulo 2^32:
--   0 newest tick   4 units   8 place of the oldest   12 its tick   16 places in the ring   20 deadline
--   24 + 4·place    the tick of a unit
-- Units that have left the window stay until the next hit is spent. The ring doubles as it fills, and shrinks once three
-- quarters are empty.
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function sliding_log(key, now, tick, window, quota, cost)
  local M = 4294967296
  local t = (now - now % tick) / tick % M
  local newest, n, tail, oldest, size, deadline, skew = t, 0, 0, t, 0, 0, 0
  local state = redis.call('GETRANGE', key, '0', '55')
  if #state >= 24 then
    newest, n, tail, oldest, size, deadline = struct.unpack('>I4I4I4I4I4I4', state)
    local back = (newest - t) % M
    if now >= deadline * 1000 + 1000 or back > window and back < 2147483648 then
      n = 0 -- beyond its deadline, or the clock has stepped back by more than a window
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
    local chunk, at = state, 25 + place * 4
    if place + count > 8 then
      chunk, at = redis.call('GETRANGE', key, 24 + place * 4, 23 + (place + count) * 4), 1
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
  if n == 0 then
    oldest, deadline = t, 0
  end

  local short = n + (cost > 0 and cost or 1) - quota
  if short > 0 then
    local leaves = oldest
    if short > 1 then
      local offset = 24 + (tail + short - 1) % size * 4
      leaves = struct.unpack('>I4', redis.call('GETRANGE', key, offset, offset + 3))
    end
    local wait = (window - (t - leaves) % M + skew) * tick
    if deadline * 1000 - now >= wait then
      return -1, wait
    end
    local ttl = (window + (window - window % 8) / 8) * tick + 1000
    return -1, wait, nil, ttl, nil, '20', struct.pack('>I4', (now + ttl) / 1000)
  end

  local units = n + cost
  local reset = units > 0 and (window - (t - oldest) % M + skew) * tick or 0
  if cost == 0 then
    return quota - n, reset
  end
  local ttl
  if deadline * 1000 - now < window * tick then
    ttl = (window + (window - window % 8) / 8) * tick + 1000
    deadline = (now + ttl) / 1000
  end
  local entry = struct.pack('>I4', t)

  if n == 0 or units > size or size > 8 and units * 4 <= size then
    local live = ''
    if n > 0 then
      --include ringcopy.lua
      live = ring_copy(key, 24, 4, size, tail, n)
    end
    size = 8
    while size < units do size = size * 2 end
    if size > quota then size = quota end
    return quota - units, reset,
      struct.pack('>I4I4I4I4I4I4', t, units, 0, oldest, size, deadline)
        .. live .. string.rep(entry, cost) .. string.rep('\0', (size - units) * 4),
      ttl
  end

  local place = (tail + n) % size
  local count = size - place
  if cost > count then -- the rest goes to the ring's beginning, right behind the header
    return quota - units, reset, nil, ttl,
      struct.pack('>I4I4I4I4I4I4', t, units, tail, oldest, size, deadline) .. string.rep(entry, cost - count),
      24 + place * 4, string.rep(entry, count)
  end
  local head
  if ttl then
    head = struct.pack('>I4I4I4I4I4I4', t, units, tail, oldest, size, deadline)
  else
    head = struct.pack('>I4I4I4I4', t, units, tail, oldest)
  end
  return quota - units, reset, nil, ttl, head, 24 + place * 4, cost == 1 and entry or string.rep(entry, cost)
end
