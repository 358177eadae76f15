-- heed_ban makes an algorithm's decision what it is under the bucket's ban: one that lasts, or one that this refusal starts, if
-- it may. A ban never lasts longer than the rule now says, also when the clock has stepped back.
--
-- Returns remaining, wait and keep, the ms since the Unix epoch at which the last ban ends, 0 without one, and whether the key
-- says so already.
local function heed_ban(key, now, ban, starts, remaining, wait, keep)
  local size, ends, written = call('STRLEN', key), 0, true
  if size % 4 > 0 then
    ends = unpack('>I6', call('GETRANGE', key, size - 6, size - 1))
  end
  if ends > now + ban then
    ends, written = now + ban, false
  end
  if ends > now then
    if remaining >= 0 then wait = 0 end
    remaining = now - ends - 16
  elseif remaining == -1 and starts then
    ends, written = now + ban, false
  else
    return remaining, wait, keep, ends, true
  end
  local rest = ends - now
  if wait < rest then wait = rest end
  if not keep or keep < rest then keep = rest end
  return remaining, wait, keep, ends, written
end
