package limiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// TestABucketTakesTheBytesThatTheDesignSays fills buckets to their limit and asks Redis what they take, key included.
func TestABucketTakesTheBytesThatTheDesignSays(t *testing.T) {
	server := harness.Redis(t)
	admin, c := server.Client(), newClock()
	s := newRedisStore(t, server.URL, c)
	for _, w := range []struct {
		algorithm Algorithm
		quota     uint32
		cost      uint32 // largest of a hit
		bytes     int64
	}{
		{SlidingLog, 10, 1, 140}, {SlidingLog, 100, 1, 520}, {SlidingLog, 1000, 1, 4168},
		{GroupedLog, 10, 1, 264}, {GroupedLog, 100, 1, 400}, {GroupedLog, 10_000, 1, 400}, {GroupedLog, 10_000, 500, 700},
		{SlidingCounter, 10, 1, 88}, {SlidingCounter, 100, 1, 88}, {SlidingCounter, 1_000_000, 5000, 88},
		{TokenBucket, 10, 1, 88}, {TokenBucket, 100, 1, 88}, {TokenBucket, 100_000, 500, 88},
		{FixedWindow, 10, 1, 88}, {FixedWindow, 1_000_000, 5000, 88}, {CalendarWindow, 1_000_000, 5000, 88},
	} {
		name := fmt.Sprintf("%v %d, cost to %d", w.algorithm, w.quota, w.cost)
		h := hitOf(uint64(w.quota)<<8|uint64(w.cost)<<40|uint64(w.algorithm), limitOf(w.algorithm, w.quota, 10*time.Minute), 1)
		var most int64
		for spent := uint32(0); spent < 3*w.quota; spent += h.Cost {
			h.Cost = 1 + (h.Cost+w.cost/3)%w.cost
			mustTake(t, s, h)
			c.advance(10 * time.Minute / time.Duration(w.quota) * time.Duration(h.Cost) * 9 / 10)
			if spent%max(1, w.quota/64) < h.Cost {
				most = max(most, admin.MemoryUsage(t.Context(), s.key(&h)).Val())
			}
		}
		t.Logf("%-32s %5d bytes", name, most)
		if most == 0 || most > w.bytes*11/10 {
			t.Errorf("%s: %d bytes, want %d and a tenth at most", name, most, w.bytes)
		}
	}
}
