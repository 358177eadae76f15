-- attempt takes one of several requests. What goes wrong with it must not keep the others from their decisions.
local function attempt(take, first, last, offset, now, reply)
  local done, refused = pcall(take, first, last, offset, now, reply, false)
  if done then return refused end
  local text, cause = type(refused) == 'table' and refused.err or tostring(refused), 0
  for i, word in ipairs({'OOM', 'READONLY', 'WRONGTYPE', 'NOPERM'}) do
    if string.find(text, word, 1, true) then cause = i end
  end
  for i = 2 * first + 1, 2 * last do reply[i] = 0 end
  reply[2 * first - 1], reply[2 * first] = -5, cause
  return false
end
