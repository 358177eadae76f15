package limiter

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// What a hit's second number is the sum of, as lua/driver.lua has it.
const (
	flagShadow      = 1
	flagCountDenied = 2
	flagBan         = 4
	flagAsk         = 8  // decide, and write nothing
	flagMore        = 16 // another hit of the request follows
)

// appendRequest appends the hits of one request as lua/driver.lua reads them, with the windows around now of those that have a
// calendar; flags are added to those of the enforced hits.
func appendRequest(dst []byte, hits []Hit, now time.Time, flags byte) []byte {
	for i := range hits {
		own := flags
		if hits[i].Shadow {
			own = flagShadow
		}
		if i+1 < len(hits) {
			own |= flagMore
		}
		dst = appendHit(dst, &hits[i], now, own)
	}
	return dst
}

// appendHit appends the hit as lua/driver.lua reads it, in numbers: algorithm, flags, tick in ms, window in ticks, quota, burst
// and cost; a ban in ms; and of a calendar the windows around now, as Unix times. The key is not in it.
func appendHit(dst []byte, h *Hit, now time.Time, flags byte) []byte {
	if h.CountDenied {
		flags |= flagCountDenied
	}
	if h.Ban > 0 {
		flags |= flagBan
	}
	dst = append(dst, byte(h.Limit.Algorithm), flags)
	dst = appendNumber(dst, uint64(h.Limit.tick().Milliseconds()))
	dst = appendNumber(dst, uint64(h.Limit.WindowTicks()))
	dst = appendNumber(dst, uint64(h.Limit.Quota))
	dst = appendNumber(dst, uint64(h.Limit.Burst))
	dst = appendNumber(dst, uint64(h.Cost))
	if h.Ban > 0 {
		dst = appendNumber(dst, uint64(h.Ban.Milliseconds()))
	}
	if h.Limit.Algorithm == CalendarWindow {
		c := h.Limit.Calendar
		begin, end := c.Around(now)
		before, _ := c.Around(begin.Add(-1))
		_, after := c.Around(end)
		for _, border := range []time.Time{before, begin, end, after} {
			dst = appendNumber(dst, uint64(border.Unix()))
		}
	}
	return dst
}

// appendNumber appends a number as MessagePack has it: below 128 it is its own byte, else a byte tells its length.
func appendNumber(dst []byte, n uint64) []byte {
	switch {
	case n < 128:
		return append(dst, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcf), n)
}

// What stands for the remaining units in the script's reply when a hit is refused, or nothing was decided.
const (
	replyRefused = -1
	replyNever   = -2
	replyBanned  = -16 // less the ms for which the ban lasts
	replyOutside = -4
	replyFailed  = -5
)

// failures are what lua/driver.lua has numbers for in place of an error.
var failures = []errorReply{
	"ERR the script failed", "OOM command not allowed", "READONLY writes are refused", "WRONGTYPE the bucket is none", "NOPERM a command is not allowed",
}

// failed returns the error that stands in a request's part of a reply, if one does.
func failed(reply []int64) error {
	if len(reply) < 2 || reply[0] != replyFailed {
		return nil
	}
	if reply[1] < 0 || reply[1] >= int64(len(failures)) {
		return failures[0]
	}
	return failures[reply[1]]
}

// outside says of a reply that nothing was decided, because Redis's clock is outside the windows around the caller's, and
// returns what that clock shows.
func outside(reply []int64) (now time.Time, yes bool) {
	if len(reply) < 2 || reply[0] != replyOutside {
		return time.Time{}, false
	}
	return time.UnixMilli(reply[1]), true
}

// decodeReply reads the script's reply, two numbers for each hit: the remaining units, or one of the constants above, and
// ResetAfter or RetryAfter in ms. A reply that cannot be an answer to the hits is an error.
func decodeReply(hits []Hit, reply []int64) ([]Decision, error) {
	if len(reply) != 2*len(hits) {
		return nil, fmt.Errorf("script replied %d numbers for %d hits", len(reply), len(hits))
	}
	refused := false
	for i := range hits {
		refused = refused || !hits[i].Shadow && reply[2*i] < 0
	}
	decisions := make([]Decision, len(hits))
	for i := range hits {
		h, d := &hits[i], &decisions[i]
		remaining, ms := reply[2*i], reply[2*i+1]
		wait := time.Duration(ms) * time.Millisecond
		known := ms >= 0 && (ms <= h.Limit.Window.Milliseconds() || ms <= h.longestWait().Milliseconds())
		switch {
		case remaining == replyNever && ms == 0:
			d.RetryAfter = Never
		case remaining == replyRefused && known && ms > 0:
			d.RetryAfter = wait
		case remaining < replyBanned && remaining >= replyBanned-h.Ban.Milliseconds() && known && ms >= replyBanned-remaining:
			d.RetryAfter, d.BanLeft = wait, time.Duration(replyBanned-remaining)*time.Millisecond
		case remaining < 0 || remaining > int64(h.Limit.Capacity()) || !known:
			return nil, fmt.Errorf("script replied (%d, %d) for a hit of rule %q", remaining, ms, h.Rule)
		case refused && !h.Shadow && h.CountDenied && h.Cost > 0:
			d.Allowed, d.Remaining, d.RetryAfter = true, uint32(remaining), wait
		default:
			d.Allowed, d.Remaining, d.ResetAfter = true, uint32(remaining), wait
		}
	}
	return decisions, nil
}

// longestWait bounds what a bucket can make the hit wait. A clock that has stepped back adds up to a window.
func (h *Hit) longestWait() time.Duration {
	return max(h.Limit.Lifetime()+h.Limit.window(), h.Ban)
}
