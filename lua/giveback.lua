-- Gives back what hits have spent, because the request that they were part of was refused elsewhere. It never gives back more
-- than is still owed, so that it makes no room which the hits did not take; less, where that cannot be told.
--
-- KEYS[i]  the bucket of hit i
-- ARGV[1]  the request, as driver.lua was given it; none of its hits counted when refused, and their quota the largest under
--          which any hit has spent since
-- ARGV[2]  now in ms since the Unix epoch; empty, the clock of Redis
-- ARGV[3]  when they were spent: the now that driver.lua replied with
--
-- Reply: for each hit the units given back. The keys' expiry is left alone. driver.lua and the files of the algorithms say what
-- the values hold.

local call, pack, unpack, numbers = redis.call, struct.pack, struct.unpack, cmsgpack.unpack_limit
local M = 4294967296

-- The log gives back units of the hit's own tick: it closes the gap that they leave among those that came later. All go to the
-- ring.
local function sliding_log(key, now, spent, tick, window, quota, cost)
  local head = call('GETRANGE', key, '0', '35')
  if #head < 36 then return 0 end
  local newest, late, n, early, tail, size = unpack('>I4BI3BI3I4', head, 21)
  local t = (spent - spent % tick) / tick % M
  if n == 0 or late == 0 or early + late > 5 or n > size or size > 16777215 then return 0 end
  if late > n or (newest - t) % M >= 2147483648 then return 0 end
  --include ringcopy.lua
  -- The newest units, from the hit's own on.
  local count, entries = late, ''
  repeat
    count = count * 2 + 16
    if count > n then count = n end
    entries = count > late and ring_copy(key, 36, 4, size, (tail + n - count) % size, count - late) or ''
    entries = entries .. string.sub(head, 25 - late * 4, 24)
    local first = unpack('>I4', entries)
  until count == n or first ~= t and (t - first) % M < 2147483648
  local own, at = 0, nil
  for i = 1, #entries, 4 do
    if unpack('>I4', entries, i) == t then own, at = own + 1, at or i end
  end
  if own > cost then own = cost end
  if own == 0 then return 0 end

  entries = string.sub(entries, 1, at - 1) .. string.sub(entries, at + own * 4)
  local place, left = (tail + n - count) % size, count - own
  local fits = size - place
  if left > fits then
    call('SETRANGE', key, 36, string.sub(entries, fits * 4 + 1))
  end
  if left > 0 then
    call('SETRANGE', key, 36 + place * 4, string.sub(entries, 1, fits * 4))
    newest = unpack('>I4', entries, #entries - 3)
  end
  local offset = 36 + tail * 4
  early = math.min(4, size - tail, n - own)
  local four = call('GETRANGE', key, offset, offset + 15)
  call('SETRANGE', key, '4', four .. string.rep('\0', 16 - #four) .. pack('>I4BI3BI3', newest, 1, n - own, early, tail))
  return own
end

-- The group that holds the hit is the first that is not older, as long as none can have left the window.
local function grouped_log(key, now, spent, tick, window, quota, cost)
  local state = call('GETRANGE', key, '4', '35')
  if #state < 32 then return 0 end
  local newest, units, total, tail, others, oldest, oldest_units, size = unpack('>I4I4I4I4I4I4I4I4', state)
  if others > size then return 0 end
  local t = (spent - spent % tick) / tick % M
  if ((now - now % tick) / tick - t) % M >= window then return 0 end
  local function holds(last) return (last - t) % M < 2147483648 end
  for i = 0, others - 1 do
    local at, last, n = 36 + (tail + i) % size * 8, oldest, oldest_units
    if i > 0 then last, n = unpack('>I4I4', call('GETRANGE', key, at, at + 7)) end
    if holds(last) then
      if cost > n then cost = n end
      if i > 0 then
        call('SETRANGE', key, at + 4, pack('>I4', n - cost))
      else
        oldest_units = n - cost
      end
      call('SETRANGE', key, '12', pack('>I4I4I4I4I4', total - cost, tail, others, oldest, oldest_units))
      return cost
    end
  end
  if not holds(newest) then return 0 end
  if cost > units then cost = units end
  call('SETRANGE', key, '8', pack('>I4I4', units - cost, total - cost))
  return cost
end

-- The counter gives back to the window in which the hit was counted, as long as it is known.
local function sliding_counter(key, now, spent, tick, window, quota, cost)
  local state = call('GET', key)
  if not state or #state < 12 then return 0 end
  local words = #state % 6 == 4 and '>I4I4I8' or '>I3I3I6'
  local cur, prev, place = unpack(words, state)
  local function number(ms)
    local t = (ms - ms % tick) / tick
    return (t - t % window) / window % 262144
  end
  local counted = place % 262144
  if (place - counted) / 262144 ~= window then return 0 end
  if counted == number(spent) then
    if cost > cur then cost = cur end
    cur = cur - cost
  elseif counted == number(now) and counted == (number(spent) + 1) % 262144 then
    if cost > prev then cost = prev end
    prev = prev - cost
  else
    return 0
  end
  call('SETRANGE', key, '0', pack(words, cur, prev, place))
  return cost
end

-- The bucket gives back what has not come back by itself since.
local function token_bucket(key, now, spent, tick, window, quota, cost)
  local state = call('GET', key)
  if not state or #state < 12 then return 0 end
  local words, modulo = '>I5I4I3', M
  if #state >= 20 then words, modulo = '>I8I8I4', 9007199254740992 end
  local missing, newest, length = unpack(words, state)
  local t, at = (now - now % tick) / tick, (spent - spent % tick) / tick
  if length ~= window or t < at then return 0 end
  local elapsed = (t - newest) % modulo
  if elapsed >= modulo / 2 then -- the clock has stepped back
    return 0
  end
  missing = missing - elapsed * quota
  if missing < 0 then missing = 0 end
  local owed = cost * window - (t - at) * quota
  if owed > missing then owed = missing end
  if owed <= 0 then return 0 end
  call('SETRANGE', key, '0', pack(words, missing - owed, t % modulo, window))
  return (owed - owed % window) / window
end

local function fixed_window(key, now, spent, tick, window, quota, cost)
  local state = call('GET', key)
  if not state or #state < 12 then return 0 end
  local count, place = unpack('>I4I8', state)
  local t = (spent - spent % tick) / tick
  if place ~= window * 262144 + (t - t % window) / window % 262144 then return 0 end
  if cost > count then cost = count end
  call('SETRANGE', key, '0', pack('>I4', count - cost))
  return cost
end

local function calendar_window(key, now, spent, tick, window, quota, cost)
  local state = call('GET', key)
  if not state or #state < 12 then return 0 end
  local count, began, length = unpack('>I4I4I4', state)
  if spent < began * 1000 or spent >= (began + length) * 1000 then return 0 end
  if cost > count then cost = count end
  call('SETRANGE', key, '0', pack('>I4', count - cost))
  return cost
end

local algorithms = {sliding_log, grouped_log, sliding_counter, token_bucket, fixed_window, calendar_window}
local spent, now = tonumber(ARGV[3]), tonumber(ARGV[2])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
end
local reply, offset = {}, 0
for i, key in ipairs(KEYS) do
  local algorithm, flags, tick, window, quota, _, cost
  offset, algorithm, flags, tick, window, quota, _, cost = numbers(ARGV[1], 7, offset)
  if flags % 8 > 3 then offset = numbers(ARGV[1], 1, offset) end
  if algorithm == 6 then offset = numbers(ARGV[1], 4, offset) end
  reply[i] = cost > 0 and algorithms[algorithm](key, now, spent, tick, window, quota, cost) or 0
end
return reply
