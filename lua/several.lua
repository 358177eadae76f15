-- Takes one request after the other. What goes wrong with one must not keep the others from their decisions.
local first, offset = 1, 0 -- the first hit of the request that is being taken, and where it begins

local function take_all()
  while offset >= 0 do
    local refused, last, rest = take(first, offset, now, reply, false)
    if refused == nil then return -4 end
    first, offset = last + 1, rest
  end
  return 0
end

local done, outcome = pcall(take_all)
while outcome ~= 0 do
  -- The hits of the request get a code in place of decisions.
  local last, rest, algorithm, flags = first - 1, offset
  repeat
    last = last + 1
    rest, algorithm, flags = numbers(requests, 7, rest)
    if flags % 8 > 3 then rest = numbers(requests, 1, rest) end
    if algorithm == 6 then rest = numbers(requests, 4, rest) end
    reply[2 * last - 1], reply[2 * last] = 0, 0
  until flags < 16
  local code, what = -4, now
  if not done then
    --include cause.lua
    local number, text = cause(outcome)
    if first == 1 and rest < 0 then return {err = text} end -- the only request
    code, what = -5, number
  end
  reply[2 * first - 1], reply[2 * first] = code, what
  first, offset = last + 1, rest
  done, outcome = pcall(take_all)
end
