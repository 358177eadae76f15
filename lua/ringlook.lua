-- Looks at the oldest unit of a sliding_log behind those that are gone. It sets oldest, and known, at and early to what tells
-- this one and some of those that follow, where in it they begin, and how many they are.
if n - gone <= late then
  known, at, early = head, 25 - (n - gone) * 4, n - gone
else
  local place = (tail + gone) % size
  local offset = 36 + place * 4
  known, at, early = call('GETRANGE', key, offset, offset + 15), 1, n - late - gone
  if early > size - place then early = size - place end
  if early > 4 then early = 4 end
end
oldest = unpack('>I4', known, at)
