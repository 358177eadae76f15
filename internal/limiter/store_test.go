package limiter

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// D14
func TestFiveUnitsAreFiveUnitsUnderEveryAlgorithm(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, c *clock, a Algorithm) {
		h := hitOf(uint64(a), limitOf(a, 5, time.Minute), 1)
		for i, remaining := range []uint32{4, 3, 2, 1, 0, 0, 0} {
			c.advance(time.Millisecond)
			expect(t, "request", mustTake(t, s, h)[0], i < 5, remaining)
		}
	})
}

// D4
func TestHitsOfOneInstantAllCount(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		five, nine := limitOf(a, 5, time.Minute), limitOf(a, 9, time.Minute)
		allowed := 0
		for range 200 {
			if mustTake(t, s, hitOf(uint64(a), five, 1))[0].Allowed {
				allowed++
			}
		}
		if allowed != 5 {
			t.Errorf("%d of 200 passed, want 5", allowed)
		}
		for i, remaining := range []uint32{6, 3, 0, 0} {
			expect(t, "cost 3", mustTake(t, s, hitOf(100+uint64(a), nine, 3))[0], i < 3, remaining)
		}
	})
}

// D1, D2
func TestARefusedRequestSpendsNothingWhateverTheOrder(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		base := 10 * uint64(a)
		wide, middle := hitOf(base, limitOf(a, 100, time.Minute), 1), hitOf(base+1, limitOf(a, 50, time.Minute), 1)
		narrow := hitOf(base+2, limitOf(a, 2, time.Minute), 1)
		for range 2 {
			mustTake(t, s, wide, middle, narrow)
		}
		for i := range 50 {
			hits, narrowest := []Hit{wide, middle, narrow}, 2
			if i%2 == 1 {
				hits, narrowest = []Hit{narrow, middle, wide}, 0
			}
			d := mustTake(t, s, hits...)
			expect(t, "the exhausted rule", d[narrowest], false, 0)
			expect(t, "the wide rule, unspent", d[2-narrowest], true, 98)
			expect(t, "the middle rule, unspent", d[1], true, 48)
		}
		expect(t, "the wide rule alone", mustTake(t, s, wide)[0], true, 97)
		expect(t, "the middle rule alone", mustTake(t, s, middle)[0], true, 47)
	})
}

func TestShadowHitsAreSpentOnTheirOwnAndNeverRefuse(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		base := 10 * uint64(a)
		enforced, trial := hitOf(base, limitOf(a, 2, time.Minute), 1), shadow(hitOf(base+1, limitOf(a, 4, time.Minute), 1))
		strict := shadow(hitOf(base+2, limitOf(a, 1, time.Minute), 1))
		for i, want := range []struct {
			enforced, trial, strict       bool
			enforcedLeft, trialLeft, left uint32
		}{
			{true, true, true, 1, 3, 0},
			{true, true, false, 0, 2, 0}, // a refusing shadow rule holds nothing back
			{false, true, false, 0, 1, 0},
			{false, true, false, 0, 0, 0}, // a refusing enforced rule does not hold back the shadow rule
			{false, false, false, 0, 0, 0},
		} {
			d := mustTake(t, s, strict, enforced, trial)
			expect(t, "strict", d[0], want.strict, want.left)
			expect(t, "enforced", d[1], want.enforced, want.enforcedLeft)
			expect(t, "trial", d[2], want.trial, want.trialLeft)
			if t.Failed() {
				t.Fatalf("request %d", i)
			}
		}
	})
}

// D12
func TestACostOfZeroAsksWhetherOneMoreWouldPass(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		l := limitOf(a, 3, time.Minute)
		one, look := hitOf(uint64(a), l, 1), hitOf(uint64(a), l, 0)
		expect(t, "look at a full bucket", mustTake(t, s, look)[0], true, 3)
		mustTake(t, s, one)
		mustTake(t, s, one)
		expect(t, "look", mustTake(t, s, look)[0], true, 1)
		expect(t, "third", mustTake(t, s, one)[0], true, 0)
		refused := mustTake(t, s, look)[0]
		expect(t, "look at an empty bucket", refused, false, 0)
		if want := mustTake(t, s, one)[0].RetryAfter; refused.RetryAfter != want {
			t.Errorf("a look waits %v, one unit %v", refused.RetryAfter, want)
		}
	})
}

// D11, D117
func TestWhatCanNeverPassIsRefusedForGoodAndSpendsNothing(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		l := limitOf(a, 5, time.Minute)
		zero := Limit{Algorithm: a, Window: time.Minute, Tick: time.Millisecond}
		for what, h := range map[string]Hit{
			"cost above the limit": hitOf(uint64(a), l, 6),
			"limit 0":              hitOf(10+uint64(a), zero, 1),
			"a look at limit 0":    hitOf(10+uint64(a), zero, 0),
		} {
			if d := mustTake(t, s, h)[0]; d != (Decision{RetryAfter: Never}) {
				t.Errorf("%s: %+v, want refused for good", what, d)
			}
		}
		other := hitOf(20+uint64(a), l, 1)
		expect(t, "another rule of that request", mustTake(t, s, hitOf(uint64(a), l, 6), other)[1], true, 5)
		expect(t, "all five at once", mustTake(t, s, hitOf(uint64(a), l, 5))[0], true, 0)
	})
}

// D92
func TestAChangedLimitActsOnTheNextHit(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		ten, twenty, five := limitOf(a, 10, time.Minute), limitOf(a, 20, time.Minute), limitOf(a, 5, time.Minute)
		mustTake(t, s, hitOf(uint64(a), ten, 10))
		expect(t, "exhausted", mustTake(t, s, hitOf(uint64(a), ten, 1))[0], false, 0)
		expect(t, "raised to 20", mustTake(t, s, hitOf(uint64(a), twenty, 1))[0], true, 9)
		mustTake(t, s, hitOf(10+uint64(a), twenty, 7))
		expect(t, "7 used, lowered to 5", mustTake(t, s, hitOf(10+uint64(a), five, 1))[0], false, 0)
	})
}

// D61, D62
func TestBucketsAreToldApartByTheirKeyAlone(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		base := 10 * uint64(a)
		ten, two := limitOf(a, 10, time.Minute), limitOf(a, 2, time.Minute)
		mustTake(t, s, hitOf(base, ten, 1))
		mustTake(t, s, hitOf(base, ten, 1))
		expect(t, "another key", mustTake(t, s, hitOf(base+1, two, 1))[0], true, 1)
		for i, h := range []Hit{{Rule: "a"}, {Rule: "b"}, {Rule: "c"}} { // one bucket, whatever names the rule
			h.Key, h.Limit, h.Cost = keyOf(base+2), two, 1
			expect(t, "one key", mustTake(t, s, h)[0], i < 2, []uint32{1, 0, 0}[i])
		}
	})
}

// D18
func TestTheLogsLetNothingThroughAcrossABoundary(t *testing.T) {
	for _, a := range []Algorithm{SlidingLog, GroupedLog} {
		overStores(t, func(t *testing.T, s Store, c *clock) {
			l := limitOf(a, 100, time.Minute)
			passed := func() (n int) {
				for range 100 {
					if mustTake(t, s, hitOf(1, l, 1))[0].Allowed {
						n++
					}
				}
				return n
			}
			c.advance(59 * time.Second)
			if n := passed(); n != 100 {
				t.Errorf("%v: %d of the first 100 passed", a, n)
			}
			c.advance(1100 * time.Millisecond)
			if n := passed(); n != 0 {
				t.Errorf("%v: %d passed just after the boundary", a, n)
			}
			c.advance(58900 * time.Millisecond)
			if n := passed(); n != 100 {
				t.Errorf("%v: %d of 100 passed one window after the first", a, n)
			}
		})
	}
}

// D61
func TestBothStoresDecideOneTraceAlike(t *testing.T) {
	c := newClock()
	memory, shared := NewMemory(MemoryOptions{Now: c.time}), newRedisStore(t, harness.Redis(t).URL, c)
	r := rand.New(rand.NewPCG(1, 2))
	for step := range 3000 {
		c.advance(time.Duration(r.IntN(4)*r.IntN(400)) * time.Millisecond)
		hits := make([]Hit, 1+r.IntN(4))
		for i := range hits {
			a := Algorithm(1 + r.IntN(len(Algorithms)))
			l := limitOf(a, uint32(r.IntN(12)), 2*time.Second)
			if a == TokenBucket { // a lower rate would make a bucket outlive its time in Redis, whose keys expire by another clock
				l.Quota, l.Burst = 5, 1+uint32(r.IntN(12))
			}
			key := uint64(i)<<8 | uint64(a)<<2 | uint64(r.IntN(2))
			hits[i] = hitOf(key, l, uint32(r.IntN(4)))
			hits[i].Shadow = r.IntN(4) == 0
		}
		got, want := mustTake(t, shared, hits...), mustTake(t, memory, hits...)
		for i := range hits {
			if got[i] != want[i] {
				t.Fatalf("step %d, hit %d %+v: redis %+v, memory %+v", step, i, hits[i], got[i], want[i])
			}
		}
	}
}

// DESIGN §7
func TestACancelledRequestIsSpentAllTheSame(t *testing.T) {
	overStores(t, func(t *testing.T, s Store, _ *clock) {
		h := hitOf(1, limitOf(SlidingLog, 5, time.Minute), 1)
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		for range 5 {
			_, _ = s.Take(cancelled, []Hit{h})
		}
		expect(t, "the sixth", mustTake(t, s, h)[0], false, 0)
	})
}

func TestATakeOfNoHitsDecidesNothing(t *testing.T) {
	overStores(t, func(t *testing.T, s Store, _ *clock) { mustTake(t, s) })
}
