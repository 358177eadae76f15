-- cause returns the number of what went wrong, and the text of an error that says so.
local function cause(failure)
  local text, number = type(failure) == 'table' and failure.err or tostring(failure), 0
  for i, word in ipairs({'OOM', 'READONLY', 'WRONGTYPE', 'NOPERM'}) do
    if string.find(text, word, 1, true) then number = i end
  end
  return number, string.find(text, '^%u+ ') and text or 'ERR ' .. text
end
