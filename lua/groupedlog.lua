-- grouped_log: the units that passed, in groups of up to ⌈quota/32⌉ that leave the window together, when the newest unit
-- of the group does. Never above the quota in any window, in little memory.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
--
-- Value, u32 big-endian; ticks are modulo 2^32:
--    0 the newest group: tick of its newest unit   4 its units   8 units of all groups
--   12 place of the oldest of the other groups   16 how many others   20 the oldest: tick   24 its units
--   28 places in the ring of the others   32 deadline
--   36 + 8·place: tick and units of another group
-- Groups that have left the window stay until the next hit is spent.
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function grouped_log(key, now, tick, window, quota, cost)
  local M = 4294967296
  local t = (now - now % tick) / tick % M
  local newest, units, total, tail, others, oldest, oldest_units, size, deadline = t, 0, 0, 0, 0, t, 0, 0, 0
  local skew, left = 0, false
  local state = redis.call('GETRANGE', key, '0', '35')
  if #state == 36 then
    newest, units, total, tail, others, oldest, oldest_units, size, deadline =
      struct.unpack('>I4I4I4I4I4I4I4I4I4', state)
    local back = (newest - t) % M
    if now >= deadline * 1000 + 1000 or back > window and back < 2147483648 then
      total = 0 -- beyond its deadline, or the clock has stepped back by more than a window
    elseif back < 2147483648 then
      t, skew = newest, back
    elseif M - back >= window then
      total = 0
    end
  end
  if total == 0 then
    units, tail, others, size, deadline = 0, 0, 0, 0, 0
  end

  -- Skip the groups that have left the window. The newest has not.
  while others > 0 and (t - oldest) % M >= window do
    left = true
    total, others, tail = total - oldest_units, others - 1, (tail + 1) % size
    if others > 0 then
      local at = 36 + tail * 8
      oldest, oldest_units = struct.unpack('>I4I4', redis.call('GETRANGE', key, at, at + 7))
    end
  end

  local short = total + (cost > 0 and cost or 1) - quota
  if short > 0 then
    local leaves = newest
    if others > 0 then
      leaves, short = oldest, short - oldest_units
      local i = 1
      while short > 0 and i < others do
        local at, n = 36 + (tail + i) % size * 8
        leaves, n = struct.unpack('>I4I4', redis.call('GETRANGE', key, at, at + 7))
        short, i = short - n, i + 1
      end
      if short > 0 then leaves = newest end
    end
    local wait = (window - (t - leaves) % M + skew) * tick
    if deadline * 1000 - now >= wait then
      return -1, wait
    end
    local ttl = (window + (window - window % 8) / 8) * tick + 1000
    return -1, wait, nil, ttl, nil, '32', struct.pack('>I4', (now + ttl) / 1000)
  end

  if cost == 0 then
    local first = others > 0 and oldest or newest
    return quota - total, total > 0 and (window - (t - first) % M + skew) * tick or 0
  end
  local ttl
  if deadline * 1000 - now < window * tick then
    ttl = (window + (window - window % 8) / 8) * tick + 1000
    deadline = (now + ttl) / 1000
  end
  local fresh, closed, closed_units = total == 0, newest, units
  local joins = fresh or newest == t or units + cost <= (quota + 31 - (quota + 31) % 32) / 32
  total, newest, units = total + cost, t, joins and units + cost or cost
  if not joins then
    if others == 0 then oldest, oldest_units = closed, closed_units end
    others, left = others + 1, true
  end
  local first = others > 0 and oldest or newest
  local remaining, reset = quota - total, (window - (t - first) % M + skew) * tick

  if fresh then
    return remaining, reset, struct.pack('>I4I4I4I4I4I4I4I4I4', t, units, total, 0, 0, t, 0, 0, deadline), ttl
  end
  if not joins and others > size then
    local live = ''
    if others > 1 then
      --include ringcopy.lua
      live = ring_copy(key, 36, 8, size, tail, others - 1)
    end
    size = size > 0 and size * 2 or 4
    return remaining, reset,
      struct.pack('>I4I4I4I4I4I4I4I4I4', t, units, total, 0, others, oldest, oldest_units, size, deadline)
        .. live .. struct.pack('>I4I4', closed, closed_units) .. string.rep('\0', (size - others) * 8),
      ttl
  end
  local head
  if ttl then
    head = struct.pack('>I4I4I4I4I4I4I4I4I4', t, units, total, tail, others, oldest, oldest_units, size, deadline)
  elseif left then
    head = struct.pack('>I4I4I4I4I4I4I4', t, units, total, tail, others, oldest, oldest_units)
  else
    head = struct.pack('>I4I4I4', t, units, total)
  end
  if joins then
    return remaining, reset, nil, ttl, head
  end
  return remaining, reset, nil, ttl, head, 36 + (tail + others - 1) % size * 8, struct.pack('>I4I4', closed, closed_units)
end
