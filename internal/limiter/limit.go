// Package limiter decides whether hits may pass: the limits, the algorithms as pure functions, and the stores that keep
// the buckets. It knows nothing of Envoy, of HTTP or of YAML.
package limiter

import (
	"math/bits"
	"time"
)

// Algorithm is the law by which a bucket admits hits. The zero value is no algorithm.
type Algorithm uint8

// The algorithms, in the order in which the documentation lists them. The numbers go over the wire to the Lua driver
// and into every bucket's key: never renumber them.
const (
	SlidingLog     Algorithm = 1 // exact: never above the quota in any window, never refuses a free place
	GroupedLog     Algorithm = 2 // never above the quota; refuses only when fewer than cost + ⌈quota/32⌉ − 1 places are free
	SlidingCounter Algorithm = 3 // two counts and a weight: approximate, cheap
	TokenBucket    Algorithm = 4 // burst, then a steady rate of quota units in each window
	FixedWindow    Algorithm = 5 // one count for each window aligned to the Unix epoch
	CalendarWindow Algorithm = 6 // fixed_window too: one count for each day, week, month or year of a calendar
)

// Algorithms lists the names that the configuration uses, in the order of the constants.
var Algorithms = []string{"sliding_log", "grouped_log", "sliding_counter", "token_bucket", "fixed_window"}

// String returns the algorithm's name in the configuration.
func (a Algorithm) String() string {
	if a == CalendarWindow {
		a = FixedWindow
	}
	if a < 1 || int(a) > len(Algorithms) {
		return "none"
	}
	return Algorithms[a-1]
}

// Bounds of a limit. The configuration refuses what lies outside.
const (
	MaxSlidingLogQuota = 10_000_000 // the exact log keeps a time for each unit
	MaxSlidingLogCost  = 10_000     // a cost of n is n entries of the exact log
	MinWindow          = time.Millisecond
	MaxWindow          = 366 * 24 * time.Hour
	MaxBurstLifetime   = 3660 * 24 * time.Hour // bound of burst·window/quota
)

// Limit is a quota of units in a window of time, under one algorithm. The zero value admits nothing.
type Limit struct {
	Algorithm Algorithm
	// Quota is the number of units that may pass in one Window: 0 … 2^32−1 (MaxSlidingLogQuota for SlidingLog). With 0
	// nothing ever passes.
	Quota uint32
	// Window is the length of time for which Quota holds: MinWindow … MaxWindow. For CalendarWindow it is Calendar's longest
	// window.
	Window time.Duration
	// Calendar says where the windows of CalendarWindow begin and end; it is zero for the other algorithms.
	Calendar Calendar
	// Burst is how many units a full token bucket holds: 1 … 2^32−1. It is 0 for the other algorithms, and for a token
	// bucket with a quota of 0.
	Burst uint32
	// Tick is the unit in which the bucket counts time: 1, 10, 100 … ms. It is part of the bucket's identity. TickFor
	// chooses it; a zero Tick is one millisecond.
	Tick time.Duration
}

// Capacity is the most that can be left: the burst of a token bucket, the quota of the others, in units.
func (l Limit) Capacity() uint32 {
	if l.Algorithm == TokenBucket {
		return l.Burst
	}
	return l.Quota
}

// NeverPasses reports whether a hit of that cost is refused whatever the bucket holds: the cost is above the capacity,
// or the quota is 0.
func (l Limit) NeverPasses(cost uint32) bool {
	return l.Quota == 0 || cost > l.Capacity()
}

// Lifetime is the time after which a bucket that is left alone is as good as new: the window, two windows for
// SlidingCounter, ⌈burst·window/quota⌉ for TokenBucket. It bounds ResetAfter and RetryAfter too. 0 with a quota of 0.
func (l Limit) Lifetime() time.Duration {
	switch {
	case l.Quota == 0:
		return 0
	case l.Algorithm == SlidingCounter:
		return 2 * l.window()
	case l.Algorithm == TokenBucket:
		return time.Duration(ceilDiv(uint64(l.Burst)*l.WindowTicks(), uint64(l.Quota))) * l.tick()
	}
	return l.window()
}

// WindowTicks is the window in ticks, rounded up: 1 … 2^30.
func (l Limit) WindowTicks() uint64 {
	return ceilDiv(uint64(l.Window), uint64(l.tick()))
}

// window is the window as the bucket counts it: whole ticks.
func (l Limit) window() time.Duration { return time.Duration(l.WindowTicks()) * l.tick() }

func (l Limit) tick() time.Duration {
	if l.Tick == 0 {
		return time.Millisecond
	}
	return l.Tick
}

// TickFor returns the smallest tick of 1, 10, 100 … ms with which the window is at most 2^30 ticks and capacity·window is
// below 2^51, so that every product the algorithms form is exact in a double, which is what Lua has. capacity is the
// largest quota or burst that the bucket will ever be asked for. A ban keeps a bucket for longer than its window: with that too
// it lives for at most 2^31 ticks, so that a tick modulo 2^32 is never taken for another.
func TickFor(capacity uint32, window, ban time.Duration) time.Duration {
	for tick := time.Millisecond; ; tick *= 10 {
		w := ceilDiv(uint64(window), uint64(tick))
		hi, lo := bits.Mul64(uint64(capacity), w)
		if w <= 1<<30 && hi == 0 && lo < 1<<51 && ceilDiv(uint64(ban), uint64(tick))+2*w <= 1<<31 {
			return tick
		}
	}
}

// ceilDiv is ⌈a/b⌉; b must not be 0.
func ceilDiv(a, b uint64) uint64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}
