package limiter

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawLimit draws a limit over the whole range that the configuration accepts.
func drawLimit(t *rapid.T, a Algorithm) Limit {
	most := uint32(math.MaxUint32)
	if a == SlidingLog {
		most = 3000
	}
	small := rapid.Uint32Range(1, 70)
	l := Limit{
		Algorithm: a,
		Quota:     rapid.OneOf(small, rapid.Uint32Range(1, most)).Draw(t, "quota"),
		Window: time.Duration(rapid.OneOf(
			rapid.Int64Range(1, 100), rapid.Int64Range(1, MaxWindow.Milliseconds()),
		).Draw(t, "window")) * time.Millisecond,
	}
	if a == TokenBucket {
		longest := float64(MaxBurstLifetime) * float64(l.Quota) / float64(l.Window)
		l.Burst = rapid.OneOf(small, rapid.Uint32()).Draw(t, "burst")
		l.Burst = uint32(max(1, min(float64(l.Burst), longest/2)))
	}
	l.Tick = TickFor(max(l.Quota, l.Burst), l.Window, 0)
	return l
}

func drawAlgorithm(t *rapid.T) Algorithm {
	return rapid.SampledFrom([]Algorithm{SlidingLog, GroupedLog, SlidingCounter, TokenBucket, FixedWindow}).Draw(t, "algorithm")
}

// drawCost draws from 0 to one above the capacity, small costs most often.
func drawCost(t *rapid.T, l Limit) uint32 {
	c := l.Capacity()
	return rapid.OneOf(
		rapid.Uint32Range(0, min(3, c)), rapid.Uint32Range(0, min(c/8+1, c)), rapid.Uint32Range(0, c),
		rapid.Just(max(c, c+1)), // c+1 wraps
	).Draw(t, "cost")
}

// drawPause draws a time in ms, from none to more than a window.
func drawPause(t *rapid.T, l Limit) int64 {
	w := l.Window.Milliseconds()
	return rapid.OneOf(
		rapid.Just(int64(0)), rapid.Int64Range(0, w/16+1), rapid.Int64Range(0, w/2+1), rapid.Int64Range(0, 3*w),
	).Draw(t, "pause")
}

// kept is what a store has of a bucket at that instant: a new one once it has expired.
func kept(b bucket, a Algorithm, now int64) bucket {
	if ends := b.held().ends; ends != 0 && ends <= now {
		return newBucket(a)
	}
	return b
}

// schedule takes hits from a new bucket under one limit, at times that only grow, and shows each to check: the bucket as it
// was after the hit.
func schedule(t *rapid.T, l Limit, check func(b bucket, cost uint32, now int64, d Decision)) {
	b, now := newBucket(l.Algorithm), aligned
	for range rapid.IntRange(1, 60).Draw(t, "hits") {
		now += drawPause(t, l)
		cost := drawCost(t, l)
		b = kept(b, l.Algorithm, now)
		check(b, cost, now, takeOne(b, l, cost, now))
	}
}

func TestNumbersStayWithinTheirBounds(t *testing.T) { // D24
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, drawAlgorithm(t))
		schedule(t, l, func(b bucket, cost uint32, now int64, d Decision) {
			refusedForGood := d.RetryAfter == Never && !d.Allowed
			switch {
			case refusedForGood != l.NeverPasses(cost),
				d.Remaining > l.Capacity(),
				d.Allowed && (d.RetryAfter != 0 || d.ResetAfter < 0 || d.ResetAfter > l.Lifetime()),
				d.Allowed && (d.ResetAfter == 0) != (d.Remaining == l.Capacity()),
				!d.Allowed && (d.Remaining != 0 || d.ResetAfter != 0),
				!d.Allowed && !refusedForGood && (d.RetryAfter <= 0 || d.RetryAfter > l.Lifetime()):
				t.Fatalf("cost %d: %s", cost, brief(d))
			}
			lifetime := l.Lifetime()
			if left := b.held().ends - now; b.held().ends != 0 && d.Allowed && cost > 0 &&
				(left < lifetime.Milliseconds() || left > (lifetime+l.window()/8+3*time.Second).Milliseconds()) {
				t.Fatalf("the bucket is kept for %d ms more", left)
			}
			if full := b.full(l.law(), now); full > now+lifetime.Milliseconds() || full > now && full > b.held().ends {
				t.Fatalf("the bucket is full at %d, expires at %d, now is %d", full, b.held().ends, now)
			}
		})
	})
}

func TestAClientThatWaitsAsToldPassesAndNotATickEarlier(t *testing.T) { // D25
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, drawAlgorithm(t))
		b, now := newBucket(l.Algorithm), aligned
		for range rapid.IntRange(1, 60).Draw(t, "hits") {
			now += drawPause(t, l)
			if rapid.IntRange(0, 15).Draw(t, "reload") == 0 {
				if next := drawLimit(t, l.Algorithm); next.Tick == l.Tick {
					l = next
				}
			}
			cost := min(drawCost(t, l), l.Capacity())
			b = kept(b, l.Algorithm, now)
			d := takeOne(b, l, cost, now)
			units, wait := uint32(need(cost)), d.RetryAfter
			if d.Allowed {
				units, wait = d.Remaining+1, d.ResetAfter
			}
			if wait == 0 || d.Allowed && cost == 0 {
				continue
			}
			after := func(wait time.Duration) Decision { return b.look(l.law(), units, now+wait.Milliseconds()) }
			if d := after(wait); !d.Allowed {
				t.Fatalf("%d units are promised after %v, but then: %s", units, wait, brief(d))
			}
			if d := after(wait - l.tick()); d.Allowed {
				t.Fatalf("%d units are promised after %v, but a tick earlier: %s", units, wait, brief(d))
			}
		}
	})
}

func TestABucketIsFullWhenItSaysSoAndNotATickEarlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, drawAlgorithm(t))
		schedule(t, l, func(b bucket, _ uint32, now int64, _ Decision) {
			isFull := func(at int64) bool { return b.look(l.law(), 0, at).Remaining == l.Capacity() }
			if full := b.full(l.law(), now); !isFull(full) || full > now && isFull(full-l.law().tick) {
				t.Fatalf("at %d it says that it is full at %d", now, full)
			}
		})
	})
}

// spent is a hit that passed: its tick and cost.
type spent struct{ tick, cost int64 }

// inWindow is how many units passed in the window that ends at tick t.
func inWindow(all []spent, l law, t int64) (units int64) {
	for _, s := range all {
		if t-s.tick < l.window {
			units += s.cost
		}
	}
	return units
}

func TestASlidingLogIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, SlidingLog)
		l := limit.law()
		var passed []spent
		schedule(t, limit, func(_ bucket, cost uint32, now int64, d Decision) {
			free := l.quota - inWindow(passed, l, now/l.tick)
			if d.Allowed != (free >= need(cost)) || d.Allowed && int64(d.Remaining) != free-int64(cost) {
				t.Fatalf("cost %d with %d places free: %s", cost, free, brief(d))
			}
			if d.Allowed {
				passed = append(passed, spent{now / l.tick, int64(cost)})
			}
		})
	})
}

func TestAGroupedLogIsNeverAboveItsQuotaAndRefusesOnlyWhenNearlyFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, GroupedLog)
		l := limit.law()
		var passed []spent
		schedule(t, limit, func(_ bucket, cost uint32, now int64, d Decision) {
			free := l.quota - inWindow(passed, l, now/l.tick)
			if d.Allowed && (free < int64(cost) || int64(d.Remaining) > free-int64(cost)) {
				t.Fatalf("cost %d with %d places free: %s", cost, free, brief(d))
			}
			if !d.Allowed && d.RetryAfter != Never && free >= need(cost)+divUp(l.quota, groups)-1 {
				t.Fatalf("cost %d with %d places free: %s", cost, free, brief(d))
			}
			if d.Allowed {
				passed = append(passed, spent{now / l.tick, int64(cost)})
			}
		})
	})
}

func TestASlidingCounterFollowsItsFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, SlidingCounter)
		l := limit.law()
		units := map[int64]int64{} // by window
		schedule(t, limit, func(_ bucket, cost uint32, now int64, d Decision) {
			i, e := now/l.tick/l.window, now/l.tick%l.window
			estimate := new(big.Rat).Mul(big.NewRat(units[i-1], 1), big.NewRat(l.window-e, l.window))
			estimate.Add(estimate, big.NewRat(units[i]+need(cost), 1))
			if pass := estimate.Cmp(big.NewRat(l.quota, 1)) <= 0; d.Allowed != (pass && !limit.NeverPasses(cost)) {
				t.Fatalf("cost %d makes %v: %s", cost, estimate, brief(d))
			}
			if d.Allowed {
				units[i] += int64(cost)
			}
		})
	})
}

func TestATokenBucketFollowsItsFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, TokenBucket)
		l := limit.law()
		left, last := big.NewRat(l.burst, 1), int64(0)
		schedule(t, limit, func(_ bucket, cost uint32, now int64, d Decision) {
			tick := now / l.tick
			left.Add(left, new(big.Rat).Mul(big.NewRat(tick-last, l.window), big.NewRat(l.quota, 1)))
			if full := big.NewRat(l.burst, 1); left.Cmp(full) > 0 {
				left = full
			}
			last = tick
			if pass := left.Cmp(big.NewRat(need(cost), 1)) >= 0; d.Allowed != pass {
				t.Fatalf("cost %d with %v left: %s", cost, left, brief(d))
			}
			if d.Allowed {
				left.Sub(left, big.NewRat(int64(cost), 1))
				if whole := new(big.Int).Quo(left.Num(), left.Denom()); whole.Int64() != int64(d.Remaining) {
					t.Fatalf("%v left: %s", left, brief(d))
				}
			}
		})
	})
}

func TestAFixedWindowCountsWhatPassedInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, FixedWindow)
		l := limit.law()
		units := map[int64]int64{} // by window
		schedule(t, limit, func(_ bucket, cost uint32, now int64, d Decision) {
			i := now / l.tick / l.window
			if pass := units[i]+need(cost) <= l.quota; d.Allowed != pass {
				t.Fatalf("cost %d after %d: %s", cost, units[i], brief(d))
			}
			if d.Allowed {
				units[i] += int64(cost)
			}
		})
	})
}
