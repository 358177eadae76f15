-- ceil_mul_div is ⌈a·b/c⌉ for a < 2^32 and b, c ≤ 2^30. The product may be beyond 2^53: it is taken in two halves.
local function ceil_mul_div(a, b, c)
  local low = a % 65536
  local high = (a - low) / 65536 * b
  local rest = high % c
  return (high - rest) / c * 65536 + math.ceil((rest * 65536 + low * b) / c)
end
