package config

import (
	"cmp"
	"math"
	"math/bits"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

const wantLimit = "QUOTA/WINDOW like 100/1m"

// limit reads limit, timezone, algorithm and burst, which bound each other. It returns the burst that is written; 0 when none
// is.
func (f fields) limit(l *limiter.Limit) (burst uint32) {
	l.Algorithm = f.algorithm()
	if v, ok := f.require("limit", wantLimit); ok {
		v.quota(l)
	}
	f.timezone(l)
	return f.burst(l, 0)
}

// algorithm returns the algorithm of a rule, whatever its windows; none if it cannot be told, so that nothing is held against
// its bounds.
func (f fields) algorithm() limiter.Algorithm {
	v, ok := f.get("algorithm")
	switch {
	case !ok && f.meant["algorithm"]:
		return 0
	case !ok:
		return limiter.SlidingLog
	}
	i, ok := v.choice(limiter.Algorithms)
	if !ok {
		return 0
	}
	return limiter.Algorithm(i + 1)
}

// quota reads the quota and window of a limit, by which a fixed_window is one of two algorithms. ok is false if the window
// cannot be told, or is not for the algorithm.
func (v value) quota(l *limiter.Limit) (ok bool) {
	text, ok := v.text(wantLimit)
	if !ok {
		return false
	}
	written, err := parseLimit(text)
	l.Quota, l.Window, l.Calendar.Period = written.Quota, written.Window, written.Calendar.Period
	switch period := l.Calendar.Period; {
	case err != nil:
		v.fail("%v", err)
		return false
	case period != 0 && (l.Algorithm == limiter.FixedWindow || l.Algorithm == limiter.CalendarWindow):
		l.Algorithm = limiter.CalendarWindow
	case period != 0 && l.Algorithm != 0:
		v.fail("%s is a window of the calendar, wanted algorithm: fixed_window, which alone has such, or %d/%s", quote(text), l.Quota, rolling[period])
		return false
	case l.Algorithm == limiter.SlidingLog && l.Quota > limiter.MaxSlidingLogQuota:
		v.fail("%s is too much for sliding_log, wanted a quota of at most %d, or grouped_log",
			quote(text), limiter.MaxSlidingLogQuota)
	}
	return true
}

// burst sets the burst of a limit: 0 if it is no token bucket, or one that never fills. One that is not written is
// otherwise or, if that is 0, the quota. burst returns what is written; 0 when nothing is.
func (f fields) burst(l *limiter.Limit, otherwise uint32) (written uint32) {
	at, isWritten := f.get("burst")
	if isWritten {
		n, _ := at.number(1, math.MaxUint32)
		written = uint32(n)
	} else {
		at = f.entries["limit"]
	}
	burst := cmp.Or(written, otherwise, l.Quota)
	l.Burst = 0
	switch {
	case l.Algorithm == limiter.TokenBucket && l.Quota > 0:
		l.Burst = burst
		if tooSlow(burst, l) && at.node != nil { // without either, the burst is another's, who says so
			at.fail("%d takes longer than 3660d to refill at %s, wanted a smaller burst or a larger quota", burst, formatLimit(*l))
		}
	case isWritten && l.Algorithm != limiter.TokenBucket && l.Algorithm != 0:
		f.keys["burst"].fail("does not go with algorithm: %s, wanted algorithm: token_bucket", l.Algorithm)
	}
	return written
}

// tooSlow reports whether burst·window/quota is above its bound.
func tooSlow(burst uint32, l *limiter.Limit) bool {
	needHigh, needLow := bits.Mul64(uint64(burst), uint64(l.Window/time.Millisecond))
	high, low := bits.Mul64(uint64(l.Quota), uint64(limiter.MaxBurstLifetime/time.Millisecond))
	return needHigh > high || needHigh == high && needLow > low
}

// setTicks gives the limits of a rule and its overrides one tick, which suits the largest: they share their buckets.
func setTicks(r *rules.Rule) {
	capacity := r.Limit.Capacity()
	for i := range r.Overrides {
		capacity = max(capacity, r.Overrides[i].Limit.Capacity())
	}
	r.Limit.Tick = limiter.TickFor(capacity, r.Limit.Window, r.Ban)
	if r.Limit.Algorithm == limiter.CalendarWindow { // it multiplies nothing, and no change of quota may change its tick
		r.Limit.Tick = time.Second
	}
	for i := range r.Overrides {
		r.Overrides[i].Limit.Tick = r.Limit.Tick
	}
}
