-- ring_copy reads the n ≥ 1 entries of a ring, oldest first. The ring has size places of width bytes and begins at offset;
-- tail is the place of the oldest entry.
local function ring_copy(key, offset, width, size, tail, n)
  local count = size - tail
  if n <= count then
    return call('GETRANGE', key, offset + tail * width, offset + (tail + n) * width - 1)
  end
  return call('GETRANGE', key, offset + tail * width, offset + size * width - 1)
    .. call('GETRANGE', key, offset, offset + (n - count) * width - 1)
end
