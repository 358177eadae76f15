package limiter

import (
	"encoding/binary"
	"fmt"
	"time"
)

// hitSize is the length of a hit in the script's argument.
const hitSize = 22

// appendHit appends the hit as lua/driver.lua reads it, big-endian: algorithm and shadow (0 or 1) in a byte each, then tick
// in ms, window in ticks, quota, burst and cost in four bytes each. The key is not in it.
func appendHit(dst []byte, h Hit) []byte {
	shadow := byte(0)
	if h.Shadow {
		shadow = 1
	}
	dst = append(dst, byte(h.Limit.Algorithm), shadow)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Limit.tick().Milliseconds()))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Limit.WindowTicks()))
	dst = binary.BigEndian.AppendUint32(dst, h.Limit.Quota)
	dst = binary.BigEndian.AppendUint32(dst, h.Limit.Burst)
	return binary.BigEndian.AppendUint32(dst, h.Cost)
}

// What stands for the remaining units in the script's reply when a hit is refused.
const (
	replyRefused = -1
	replyNever   = -2
)

// decodeReply reads the script's reply, two numbers for each hit: the remaining units, or one of the constants above, and
// ResetAfter or RetryAfter in ms. A reply that cannot be an answer to the hits is an error.
func decodeReply(hits []Hit, reply []int64) ([]Decision, error) {
	if len(reply) != 2*len(hits) {
		return nil, fmt.Errorf("script replied %d numbers for %d hits", len(reply), len(hits))
	}
	decisions := make([]Decision, len(hits))
	for i, h := range hits {
		remaining, ms := reply[2*i], reply[2*i+1]
		wait := time.Duration(ms) * time.Millisecond
		// A clock that has stepped back adds up to a window.
		known := ms >= 0 && ms <= (h.Limit.Lifetime()+h.Limit.window()).Milliseconds()
		switch {
		case remaining == replyNever && ms == 0:
			decisions[i] = Decision{RetryAfter: Never}
		case remaining == replyRefused && known && ms > 0:
			decisions[i] = Decision{RetryAfter: wait}
		case remaining >= 0 && remaining <= int64(h.Limit.Capacity()) && known:
			decisions[i] = Decision{Allowed: true, Remaining: uint32(remaining), ResetAfter: wait}
		default:
			return nil, fmt.Errorf("script replied (%d, %d) for a hit of rule %q", remaining, ms, h.Rule)
		}
	}
	return decisions, nil
}
