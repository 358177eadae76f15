package limiter

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// fleet takes one hit in each of n goroutines, spread over the stores, and returns the decisions.
func fleet(t testing.TB, n int, h Hit, stores ...Store) []Decision {
	t.Helper()
	decisions, failures := make([]Decision, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			d, err := stores[i%len(stores)].Take(context.Background(), []Hit{h})
			if failures[i] = err; err == nil {
				decisions[i] = d[0]
			}
		})
	}
	wg.Wait()
	for _, err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}
	return decisions
}

// checkFleet checks that exactly limit of the decisions allow, and that the remaining units count down to 0.
func checkFleet(t testing.TB, decisions []Decision, limit int) {
	t.Helper()
	allowed, seen := 0, make(map[uint32]bool)
	for _, d := range decisions {
		if d.Allowed {
			allowed++
			seen[d.Remaining] = true
		}
	}
	if allowed != limit || len(seen) != limit {
		t.Errorf("%d of %d passed with %d different remainders, want %d", allowed, len(decisions), len(seen), limit)
	}
}

// D3, D31
func TestAThousandAtOnceGetExactlyTheLimit(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		checkFleet(t, fleet(t, 1000, hitOf(uint64(a), limitOf(a, 100, time.Minute), 1), s), 100)
	})
}

// D3
func TestTwoDaemonsOnOneRedisShareOneLimit(t *testing.T) {
	url := harness.Redis(t).URL
	c := newClock()
	first, second := newRedisStore(t, url, c), newRedisStore(t, url, c)
	for i, name := range Algorithms {
		a := Algorithm(i + 1)
		t.Run(name, func(t *testing.T) {
			for round := range uint64(5) {
				h := hitOf(uint64(a)<<8|round, limitOf(a, 100, time.Minute), 1)
				checkFleet(t, fleet(t, 400, h, first, second), 100)
			}
		})
	}
}

// D2, D3
func TestRequestsThatShareSomeBucketsAtOnceSpendAllOrNothing(t *testing.T) {
	overStores(t, func(t *testing.T, s Store, _ *clock) {
		l := limitOf(SlidingLog, 50, time.Minute)
		common := hitOf(0, limitOf(SlidingLog, 1000, time.Minute), 1)
		var passed atomic.Int64
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				d, err := s.Take(context.Background(), []Hit{common, hitOf(1+uint64(i%3), l, 1)})
				if err != nil {
					t.Error(err)
				} else if d[1].Allowed {
					passed.Add(1)
				}
			})
		}
		wg.Wait()
		left := mustTake(t, s, hitOf(0, common.Limit, 0))[0].Remaining
		if passed.Load() != 150 || left != 850 {
			t.Errorf("%d passed, %d of the common 1000 left; want 150 and 850", passed.Load(), left)
		}
	})
}
