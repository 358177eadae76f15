-- Decides the hits of some requests, one request after the other, at one instant. The enforced hits of a request are spent all
-- or none; each of its shadow hits is decided and spent on its own, and so is each counted hit if it is refused.
--
-- KEYS[i]  the bucket of hit i; no two of a request are the same
-- ARGV[1]  the requests, and of each its hits, as numbers of MessagePack, which Redis reads faster than fixed bytes:
--            algorithm: 1 sliding_log, 2 grouped_log, 3 sliding_counter, 4 token_bucket, 5 fixed_window,
--              6 fixed_window of a calendar
--            the sum of 1 for a shadow hit, 2 for one that is counted when refused, 4 if a ban follows, 8 if it is to be decided
--              only and nothing written, and 16 if another hit of the request follows
--            tick in ms: the unit of time in which the bucket counts
--            window in ticks, 1 … 2^30
--            quota in units; quota·window < 2^51, but for token_bucket
--            burst in units, token_bucket only; burst·window < 2^51
--            cost in units; 0 asks whether one more unit would pass, and spends nothing
--            if so: for how many ms a refusal bans the bucket
--            of a calendar, four: the Unix seconds in which the window before the present one begins, the present one, the
--              one after it, and in which that ends
-- ARGV[2]  now in ms since the Unix epoch; empty or left out, the clock of Redis
-- ARGV[3]  if there is any, now is added to the reply
--
-- Reply: two integers for each hit
--   remaining ≥ 0, reset   allowed: the units left after the hit, and the ms until more come; 0 when the bucket is full.
--                          If an enforced hit was refused, those that would have passed say what is left unspent; or, if
--                          counted, what is left and the ms after which the same hit passes again, 0 if it would now.
--   -1, wait               refused: the ms after which the hit passes if nothing else is spent
--   -2, 0                  refused: the hit can never pass
--   -16 - n, wait          refused, because the bucket is banned for n more ms
-- and instead of the first of a request of which nothing was decided:
--   -4, now                now lies in none of a calendar's windows
--   -5, cause              if there are other requests: Redis refused a command, 1 for want of memory, 2 because it is read-only,
--                          3 for a bucket that is none, 4 for want of rights, or 0; with a single request that is an error
--
-- Numbers are whole and below 2^53, so that they are exact. All keys are read before one is written, and no other key is
-- touched. Each algorithm returns remaining and reset or wait, as in the reply, and then what there is to write:
--   keep   the ms for which the key must live from now on; 0 if it is known to, nil if nothing is to be written
--   whole  the new value of the key
--   head   or, instead of whole: what to write at the value's beginning
--   at     and an offset
--   part   and what to write there
-- With counted, a hit that is refused is written as far as the bucket has room, a log making it.
--
-- The length of a value is a multiple of four. When a ban has begun, six bytes follow: the ms since the Unix epoch, u48, at
-- which it ends. The values of both logs begin with the Unix second, u32, up to which the key is known to live, so that Redis
-- need not be asked; whole and head leave that out.

local call, pack, unpack, numbers = redis.call, struct.pack, struct.unpack, cmsgpack.unpack_limit
local keys, requests = KEYS, ARGV[1]

-- write writes what an algorithm returned, a whole value or with keep > 0, and renews the key's expiry once that no longer covers
-- what it must.
local function write(key, now, slack, log, keep, whole, head, at, part)
  local ttl, expiry
  if keep > 0 then
    local left = call('PTTL', key)
    if left < keep then
      ttl = keep + slack
      left = ttl
    end
    expiry = log and pack('>I4', (now + left) / 1000)
  end
  if whole then
    whole = expiry and expiry .. whole or whole
    if ttl then call('SET', key, whole, 'PX', ttl) else call('SET', key, whole, 'KEEPTTL') end
    return
  end
  if part then call('SETRANGE', key, at, part) end
  if head then call('SETRANGE', key, '0', expiry and expiry .. head or head) end
  if ttl then call('PEXPIRE', key, ttl) end
end

local laws = {} -- that have been needed

-- law returns the function of an algorithm; 0 is that of hits that can never pass. Redis runs all of this text for every call:
-- only what is needed is made.
local function law(algorithm)
  if algorithm == 1 then
    --include slidinglog.lua
    laws[algorithm] = sliding_log
  elseif algorithm == 2 then
    --include groupedlog.lua
    laws[algorithm] = grouped_log
  elseif algorithm == 3 then
    --include slidingcounter.lua
    laws[algorithm] = sliding_counter
  elseif algorithm == 4 then
    --include tokenbucket.lua
    laws[algorithm] = token_bucket
  elseif algorithm == 5 then
    --include fixedwindow.lua
    laws[algorithm] = fixed_window
  elseif algorithm == 6 then
    --include calendarwindow.lua
    laws[algorithm] = calendar_window
  elseif algorithm == 0 then
    laws[algorithm] = function() return -2, 0 end
  else
    error('unknown algorithm ' .. algorithm)
  end
  return laws[algorithm]
end

-- take decides hit i, whose numbers begin at that offset, and those of its request that follow, and writes what is to be written
-- once all of them are decided. It returns whether an enforced hit was refused, or nil if nothing is to be decided; the last hit
-- of the request, and where the next request begins, -1 if there is none.
local function take(i, offset, now, reply, refused)
  local following, algorithm, flags, tick, window, quota, burst, cost = numbers(requests, 7, offset)
  local key = keys[i]
  local shadow, counted, ban, asks, more = false, false, 0, false, false
  if flags > 0 then
    shadow, asks, more = flags % 2 > 0, flags % 16 > 7, flags > 15
    counted = flags % 4 > 1 and cost > 0 and not asks
    if flags % 8 > 3 then following, ban = numbers(requests, 1, following) end
  end
  if algorithm == 6 then burst, following = following, numbers(requests, 4, following) end

  local capacity = algorithm == 4 and burst or quota
  local never = quota == 0 or cost > capacity
  local ruling = (not never or counted and quota > 0) and algorithm or 0
  local decide = laws[ruling] or law(ruling)
  local remaining, wait, keep, whole, head, at, part = decide(key, now, tick, window, quota, never and capacity or cost, burst, counted)
  local ends, written = 0, true -- of the bucket's ban
  if ban > 0 and remaining ~= -4 and ruling > 0 then
    --include ban.lua
    local passes, starts = remaining >= 0, cost > 0 and not shadow
    if never then ban, starts = 281474976710655, false end -- such a hit does not touch the ban
    remaining, wait, keep, ends, written = heed_ban(key, now, ban, starts, remaining, wait, keep)
    if passes and remaining < 0 and not counted then whole, head, part = nil, nil, nil end
  end
  if remaining == -4 then return nil end
  if never then remaining, wait = -2, 0 end

  refused = refused or not shadow and remaining < 0
  local last = i
  if more then
    refused, last, following = take(i + 1, following, now, reply, refused)
    if refused == nil then return nil end
  end
  local held_back = refused and not shadow and remaining >= 0
  if held_back and not counted then
    remaining, wait = decide(key, now, tick, window, quota, 0, burst)
  elseif keep and not asks then
    if whole or keep > 0 then
      write(key, now, (window - window % 8) / 8 * tick + 1000, algorithm < 3, keep, whole, head, at, part)
    elseif head then -- most hits
      if part then call('SETRANGE', key, at, part) end
      call('SETRANGE', key, algorithm < 3 and '4' or '0', head)
    end
    if ends > 0 and (whole or not written) then
      local size = call('STRLEN', key)
      call('SETRANGE', key, size % 4 > 0 and size - 6 or size, pack('>I6', ends))
    end
    if counted and (held_back or remaining < 0 and remaining ~= -2) then
      local left, again = decide(key, now, tick, window, quota, cost, burst)
      wait = left < 0 and again or 0
      if remaining < 0 and wait < ends - now then wait = ends - now end
    end
  end
  reply[2 * i - 1], reply[2 * i] = remaining, wait
  return refused, last, following
end

local now, reply = tonumber(ARGV[2]), {}
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
end
if keys[2] then
  --include several.lua
elseif take(1, 0, now, reply, false) == nil then
  reply = {-4, now}
end
if ARGV[3] then reply[2 * #keys + 1] = now end
return reply
