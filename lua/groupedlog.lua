-- grouped_log: the units that passed, in groups of up to ⌈quota/32⌉ that leave the window together, when the newest unit
-- of the group does. Never above the quota in any window, in little memory.
--
-- key           the bucket
-- now           ms since the Unix epoch
-- tick, window  ms; ticks
-- quota, cost   units; cost ≤ quota
-- counted       the newest units are kept, also if the hit is refused
--
-- Value, u32 big-endian; ticks are modulo 2^32:
--    0 the key's expiry, as driver.lua says
--    4 the newest group: tick of its newest unit   8 its units   12 units of all groups
--   16 place of the oldest of the other groups   20 how many others   24 the oldest: tick   28 its units
--   32 places in the ring of the others
--   36 + 8·place: tick and units of another group
-- Groups that have left the window stay until the next hit is spent. What is left of the oldest stands in the header.
--
-- Returns remaining and reset or wait, then what to write, all as driver.lua says.
local function grouped_log(key, now, tick, window, quota, cost, _, counted)
  local M = 4294967296
  local t = (now - now % tick) / tick % M
  local lives, newest, units, total, tail, others, oldest, oldest_units, size = 0, t, 0, 0, 0, 0, t, 0, 0
  local skew, left = 0, false
  local state = call('GETRANGE', key, '0', '35')
  if #state == 36 then
    lives, newest, units, total, tail, others, oldest, oldest_units, size = unpack('>I4I4I4I4I4I4I4I4I4', state)
    local back = (newest - t) % M
    if others > size then
      total = 0 -- no value of ours
    elseif back > window and back < 2147483648 then
      total = 0 -- the clock has stepped back by more than a window
    elseif back < 2147483648 then
      t, skew = newest, back
    elseif M - back >= window then
      total = 0
    end
    lives = lives * 1000 - now -- for as many ms, unless the expiry was set by another clock, or for a longer window
    if skew > 0 or lives > window * tick * 1.125 + 1000 then lives = 0 end
  end
  if total == 0 then
    units, tail, others, size = 0, 0, 0, 0
  end

  -- Skip the groups that have left the window, of which the newest is none, those of which all was given back, and those that
  -- must make room.
  local refused = false
  while others > 0 do
    if (t - oldest) % M < window and oldest_units > 0 then
      if not counted or total + cost - oldest_units < quota then break end
      refused = true
    end
    left = true
    total, others, tail = total - oldest_units, others - 1, (tail + 1) % size
    if others > 0 then
      local at = 36 + tail * 8
      oldest, oldest_units = unpack('>I4I4', call('GETRANGE', key, at, at + 7))
    end
  end

  local short = total + (cost > 0 and cost or 1) - quota
  if short > 0 and not counted then
    local leaves = newest
    if others > 0 then
      leaves, short = oldest, short - oldest_units
      local i = 1
      while short > 0 and i < others do
        local at, n = 36 + (tail + i) % size * 8
        leaves, n = unpack('>I4I4', call('GETRANGE', key, at, at + 7))
        short, i = short - n, i + 1
      end
      if short > 0 then leaves = newest end
    end
    local wait = (window - (t - leaves) % M + skew) * tick
    return -1, wait, lives >= wait and 0 or wait
  elseif short > 0 then
    refused, total = true, total - short
    if others > 0 then
      oldest_units, left = oldest_units - short, true
    else
      units = units - short
    end
  end

  if cost == 0 then
    local first = others > 0 and oldest or newest
    return quota - total, total > 0 and (window - (t - first) % M + skew) * tick or 0
  end
  local keep = (window + skew) * tick
  local fresh, closed, closed_units = total == 0, newest, units
  local joins = fresh or newest == t or units + cost <= (quota + 31 - (quota + 31) % 32) / 32
  total, newest, units = total + cost, t, joins and units + cost or cost
  if not joins then
    if others == 0 then oldest, oldest_units = closed, closed_units end
    others, left = others + 1, true
  end
  local first = others > 0 and oldest or newest
  local remaining, reset = refused and -1 or quota - total, (window - (t - first) % M + skew) * tick

  if fresh then
    return remaining, reset, keep, pack('>I4I4I4I4I4I4I4I4', t, units, total, 0, 0, t, 0, 0)
  end
  if not joins and others > size then
    local live = ''
    if others > 1 then
      --include ringcopy.lua
      live = ring_copy(key, 36, 8, size, tail, others - 1)
    end
    size = size > 0 and size * 2 or 4
    return remaining, reset, keep, pack('>I4I4I4I4I4I4I4I4', t, units, total, 0, others, oldest, oldest_units, size)
      .. live .. pack('>I4I4', closed, closed_units) .. string.rep('\0', (size - others) * 8)
  end
  if lives >= keep then keep = 0 end
  local head
  if left then
    head = pack('>I4I4I4I4I4I4I4', t, units, total, tail, others, oldest, oldest_units)
  else
    head = pack('>I4I4I4', t, units, total)
  end
  if joins then
    return remaining, reset, keep, nil, head
  end
  return remaining, reset, keep, nil, head, 36 + (tail + others - 1) % size * 8, pack('>I4I4', closed, closed_units)
end
