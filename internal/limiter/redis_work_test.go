package limiter

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// work is how many commands the script runs for a take.
func work(t *testing.T, admin *redis.Client, take func()) (commands int) {
	t.Helper()
	if err := admin.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	take()
	for line := range strings.Lines(admin.Info(t.Context(), "commandstats").Val()) {
		name, calls, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		var n int
		if _, err := fmt.Sscanf(calls, "%d", &n); !found || err != nil {
			continue
		}
		switch name {
		case "get", "getrange", "set", "setrange", "strlen", "pttl", "pexpire":
			commands += n
		}
	}
	return commands
}

// D85
func TestACostOfAMillionIsAsMuchWorkAsACostOfOne(t *testing.T) {
	server := harness.Redis(t)
	admin, c := server.Client(), newClock()
	s := newRedisStore(t, server.URL, c)
	for _, a := range allAlgorithms[1:] { // a sliding log takes costs up to 10 000
		l := limitOf(a, 3_000_000, time.Minute)
		spend := func(key uint64, cost uint32) int {
			return work(t, admin, func() { expect(t, a.String(), mustTake(t, s, hitOf(key, l, cost))[0], true, 3_000_000-cost) })
		}
		if one, million := spend(10*uint64(a), 1), spend(10*uint64(a)+1, 1_000_000); million != one || one == 0 {
			t.Errorf("%v: %d commands for a cost of one, %d for a million", a, one, million)
		}
	}
}

// D85: also when all but the newest have left the window meanwhile, so that the script has to look for the oldest that counts.
func TestTheWorkOnALargeLogIsLogarithmic(t *testing.T) {
	server := harness.Redis(t)
	admin, c := server.Client(), newClock()
	s := newRedisStore(t, server.URL, c)
	const quota = 1_000_000
	l := limitOf(SlidingLog, quota, time.Minute)
	for left := uint32(quota); left > 0; left -= MaxSlidingLogCost {
		expect(t, "filling", mustTake(t, s, hitOf(1, l, MaxSlidingLogCost))[0], true, left-MaxSlidingLogCost)
		c.advance(100 * time.Millisecond)
	}
	most := 2*int(math.Ceil(math.Log2(quota))) + 8
	for _, row := range []struct {
		later   time.Duration
		cost    uint32
		allowed bool
	}{
		{0, 1, false},
		{0, MaxSlidingLogCost, false},
		{59 * time.Second, 1, true}, // nine tenths have left
	} {
		c.advance(row.later)
		var d Decision
		if n := work(t, admin, func() { d = mustTake(t, s, hitOf(1, l, row.cost))[0] }); n > most || d.Allowed != row.allowed {
			t.Errorf("%v later a cost of %d: %d commands, want %d at most; %+v", row.later, row.cost, n, most, d)
		} else {
			t.Logf("%v later a cost of %d: %d commands", row.later, row.cost, n)
		}
	}
}

// A hit reads the head and writes it. The ring is read and written once in four hits, and the expiry asked for once in an eighth of
// the window.
func TestASlidingLogTouchesItsRingOnceInFourHits(t *testing.T) {
	server := harness.Redis(t)
	admin, c := server.Client(), newClock()
	s := newRedisStore(t, server.URL, c)
	h := hitOf(1, limitOf(SlidingLog, 100, time.Minute), 1)
	steady := func(hits int) {
		for range hits {
			c.advance(time.Second)
			if d := mustTake(t, s, h)[0]; !d.Allowed {
				t.Fatalf("%+v", d)
			}
		}
	}
	steady(100)
	const hits = 400
	if n := work(t, admin, func() { steady(hits) }); n > hits*2+hits/2+hits/6 || n < hits*2 {
		t.Errorf("%d commands for %d hits", n, hits)
	}
}

// D82
func TestAFullServerStillAnswersWhatItRefuses(t *testing.T) {
	server := harness.Redis(t)
	s, admin := newRedisStore(t, server.URL, nil), server.Client()
	for _, a := range allAlgorithms {
		mustTake(t, s, hitOf(uint64(a), limitOf(a, 2, time.Hour), 2))
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for _, a := range allAlgorithms {
		h := hitOf(uint64(a), limitOf(a, 2, time.Hour), 1)
		expect(t, a.String(), mustTake(t, s, h)[0], false, 0)
		expect(t, a.String(), mustTake(t, s, hitOf(10+uint64(a), h.Limit, 0))[0], true, 2)
		if _, err := s.Take(t.Context(), []Hit{hitOf(10+uint64(a), h.Limit, 1)}); ErrorReason(err) != "oom" {
			t.Errorf("%v: a hit that would pass: %v", a, err)
		}
	}
}
