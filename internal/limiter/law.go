package limiter

import "time"

// law is a Limit in the whole numbers that the algorithms count with. What a bucket holds at most, quota or burst, times the
// window stays below 2^51.
type law struct {
	tick   int64 // ms
	window int64 // ticks: 1 … 2^30
	quota  int64 // units
	burst  int64 // units; token bucket only
	life   int64 // ticks after which a bucket that is left alone is full again; token bucket only

	calendar Calendar // CalendarWindow only, which counts in seconds
}

func (l Limit) law() law {
	numbers := law{
		tick:   l.tick().Milliseconds(),
		window: int64(l.WindowTicks()),
		quota:  int64(l.Quota),
		burst:  int64(l.Burst),

		calendar: l.Calendar,
	}
	if l.Algorithm == TokenBucket {
		numbers.life = int64(l.Lifetime() / l.tick())
	}
	return numbers
}

// slack is for how much longer than needed a bucket is kept, in ms, so that only few hits must prolong that.
func (l law) slack() int64 { return l.window/8*l.tick + 1000 }

// allowed is the decision that leaves that many units and has more of them after reset ticks.
func (l law) allowed(remaining, reset int64) Decision {
	return Decision{Allowed: true, Remaining: uint32(remaining), ResetAfter: l.duration(reset)}
}

// refused is the decision that asks the client to wait for that many ticks.
func (l law) refused(wait int64) Decision {
	return Decision{RetryAfter: l.duration(wait)}
}

func (l law) duration(ticks int64) time.Duration {
	return time.Duration(ticks*l.tick) * time.Millisecond
}

// need is the number of units that must be free for a hit of that cost to pass: a cost of 0 asks about one unit.
func need(cost uint32) int64 { return max(int64(cost), 1) }

// divUp is ⌈a/b⌉ for a ≥ 0 and b > 0.
func divUp(a, b int64) int64 { return (a + b - 1) / b }

// lease says until when a bucket is kept. The zero value is a bucket that does not exist.
type lease struct {
	ends int64 // from when the bucket is as good as missing, ms since the Unix epoch; it is full by then
	ban  int64 // when the bucket's last ban ends, ms since the Unix epoch
}

// held is the lease itself: all buckets embed one.
func (e *lease) held() *lease { return e }

// banned is how much longer the bucket is banned.
func (e *lease) banned(now int64) time.Duration {
	return time.Duration(max(0, e.ban-now)) * time.Millisecond
}

// refuse is bucket.refuse.
func (e *lease) refuse(l law, wait time.Duration, now int64) { e.keep(l, wait.Milliseconds(), now) }

// keep prolongs a lease that ends in less than so many ms.
func (e *lease) keep(l law, ms, now int64) {
	if e.ends-now < ms {
		e.ends = now + ms + l.slack()
	}
}

// clamp reads a log whose newest tick is last at now: it gives the tick to count from, which is last itself if the clock has
// stepped back behind it, by skew ticks. The log is fresh, nothing in it counts, if it does not exist or the step is longer
// than a window.
func (e *lease) clamp(l law, last uint32, now int64) (t uint32, skew int64, fresh bool) {
	t = uint32(now / l.tick)
	if e.ends == 0 {
		return t, 0, true
	}
	if skew = int64(last - t); skew == 0 || skew >= 1<<31 {
		return t, 0, false
	}
	if skew > l.window {
		return t, 0, true
	}
	return last, skew, false
}
