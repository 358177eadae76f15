package limiter

import "time"

// law is a Limit in the whole numbers that the algorithms count with. What a bucket holds at most, quota or burst, times the
// window stays below 2^51.
type law struct {
	tick   int64 // ms
	window int64 // ticks: 1 … 2^30
	quota  int64 // units
	burst  int64 // units; token bucket only
	life   int64 // ticks after which a bucket that is left alone is full again
}

func (l Limit) law() law {
	tick := l.tick()
	return law{
		tick:   tick.Milliseconds(),
		window: int64(l.WindowTicks()),
		quota:  int64(l.Quota),
		burst:  int64(l.Burst),
		life:   int64(l.Lifetime() / tick),
	}
}

// ttl is for how long a written bucket is kept, in ms: its lifetime and enough more that only few hits must renew it.
func (l law) ttl() int64 { return (l.life+l.window/8)*l.tick + 1000 }

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
	deadline uint32 // the Unix second, rounded down, in which the bucket expires; 0: there is no bucket
}

// expires is the time from which the bucket is as good as missing, in ms since the Unix epoch; 0 if there is no bucket.
func (e *lease) expires() int64 {
	if e.deadline == 0 {
		return 0
	}
	return (int64(e.deadline) + 1) * 1000
}

func (e *lease) missing(now int64) bool { return now >= e.expires() }

// clamp reads a log whose newest tick is last at now: it gives the tick to count from, which is last itself if the clock has
// stepped back behind it, by skew ticks. The log is fresh, nothing in it counts, if it is missing or the step is longer
// than a window.
func (e *lease) clamp(l law, last uint32, now int64) (t uint32, skew int64, fresh bool) {
	t = uint32(now / l.tick)
	if e.missing(now) {
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

// covers reports whether the bucket is kept for at least that many more ms.
func (e *lease) covers(ms, now int64) bool { return int64(e.deadline)*1000-now >= ms }

// renew prolongs a lease that no longer covers a whole lifetime.
func (e *lease) renew(l law, now int64) {
	if !e.covers(l.life*l.tick, now) {
		e.deadline = uint32((now + l.ttl()) / 1000)
	}
}

// refuse prolongs a lease that ends before the wait of a refusal does. After a change to a longer window a bucket would
// otherwise be forgotten too early.
func (e *lease) refuse(l law, wait time.Duration, now int64) {
	if !e.covers(wait.Milliseconds(), now) {
		e.deadline = uint32((now + l.ttl()) / 1000)
	}
}
