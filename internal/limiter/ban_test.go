package limiter

import (
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// refusal is a decision as a test wants it.
func refusal(t *testing.T, what string, d Decision, wait time.Duration, banned bool) {
	t.Helper()
	if d.Allowed || d.RetryAfter != wait || d.BanLeft > 0 != banned {
		t.Fatalf("%s: %+v, want a wait of %v, banned %v", what, d, wait, banned)
	}
}

// D118
func TestABanOutlastsTheWindowAndIsNotProlongedByPolling(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, c *clock, a Algorithm) {
		h := hitOf(uint64(a), limitOf(a, 20, 10*time.Second), 1)
		h.Ban = 48 * time.Hour // longer than any window here
		for i := range uint32(20) {
			expect(t, "within the limit", mustTake(t, s, h)[0], true, 19-i)
		}
		c.advance(100 * time.Millisecond)
		refusal(t, "the 21st", mustTake(t, s, h)[0], h.Ban, false)
		for i := range 47 {
			c.advance(time.Hour)
			refusal(t, "a poll", mustTake(t, s, h)[0], h.Ban-time.Duration(i+1)*time.Hour, true)
		}
		refusal(t, "a look", mustTake(t, s, look(h))[0], time.Hour, true)
		refusal(t, "what never passes", mustTake(t, s, hitOf(uint64(a), h.Limit, 21))[0], Never, false)
		c.advance(time.Hour - time.Millisecond)
		refusal(t, "the last millisecond", mustTake(t, s, h)[0], time.Millisecond, true)
		c.advance(time.Millisecond)
		expect(t, "after the ban", mustTake(t, s, h)[0], true, 19)
	})
}

// look is the same hit at no cost.
func look(h Hit) Hit {
	h.Cost = 0
	return h
}

func TestOnlyAnEnforcedHitThatSpendsSomethingStartsABan(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		h := hitOf(uint64(a), limitOf(a, 2, time.Minute), 2)
		h.Ban = 72 * time.Hour
		mustTake(t, s, h)
		for _, refused := range []Hit{look(h), shadow(h), hitOf(uint64(a), h.Limit, 3)} {
			if d := mustTake(t, s, refused)[0]; d.Allowed || d.RetryAfter == h.Ban {
				t.Fatalf("%+v: %+v", refused, d)
			}
		}
		other := hitOf(10+uint64(a), limitOf(a, 9, time.Minute), 1)
		other.Ban = 96 * time.Hour
		d := mustTake(t, s, other, h) // the other rule does not refuse
		expect(t, "the rule beside", d[0], true, 9)
		refusal(t, "the first refusal", d[1], h.Ban, false)
		expect(t, "the rule beside, later", mustTake(t, s, other)[0], true, 8)
	})
}

func TestAShorterBanActsAtOnceAndNoneLiftsIt(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, c *clock, a Algorithm) {
		h := hitOf(uint64(a), limitOf(a, 1, time.Second), 1)
		h.Ban = MaxBan
		mustTake(t, s, h)
		refusal(t, "the first refusal", mustTake(t, s, h)[0], h.Ban, false)
		h.Ban = 96 * time.Hour
		refusal(t, "after a reload", mustTake(t, s, h)[0], h.Ban, true)
		c.advance(95 * time.Hour)
		refusal(t, "towards its end", mustTake(t, s, h)[0], time.Hour, true)
		h.Ban = 0
		expect(t, "without a ban", mustTake(t, s, h)[0], true, 0)
	})
}

// Ticks are counted modulo 2^32, and 2^32 ms are 50 days.
func TestWhoWaitsOutALongBanPasses(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, c *clock, a Algorithm) {
		for i, days := range []time.Duration{30, 45, 50, 366} {
			for j, window := range []time.Duration{4 * time.Hour, 7 * 24 * time.Hour} {
				h := hitOf(uint64(a)<<16+uint64(i)<<8+uint64(j), limitOf(a, 5, window), 1)
				h.Ban = days * 24 * time.Hour
				if a != CalendarWindow {
					h.Limit.Tick = TickFor(h.Limit.Capacity(), window, h.Ban)
				}
				for range 5 {
					mustTake(t, s, h)
				}
				d := mustTake(t, s, h)[0]
				c.advance(d.RetryAfter)
				if again := mustTake(t, s, h)[0]; d.Allowed || !again.Allowed {
					t.Errorf("window %v, after a ban of %v: %+v", window, d.RetryAfter, again)
				}
			}
		}
	})
}

// D118
func TestABanSurvivesARestartOfTheDaemon(t *testing.T) {
	url := harness.Redis(t).URL
	h := hitOf(1, limitOf(SlidingLog, 1, time.Second), 1)
	h.Ban = time.Hour
	first := newRedisStore(t, url, nil)
	mustTake(t, first, h)
	mustTake(t, first, h)
	_ = first.Close()
	if d := mustTake(t, newRedisStore(t, url, nil), h)[0]; d.BanLeft == 0 || d.RetryAfter < 59*time.Minute {
		t.Errorf("%+v", d)
	}
}

// D80, D118
func TestABannedBucketIsNotForgottenForManyRandomKeys(t *testing.T) {
	c := newClock()
	m := NewMemory(MemoryOptions{MaxKeys: 1000, Now: c.time})
	h := hitOf(1, limitOf(SlidingLog, 1, time.Second), 1)
	h.Ban = time.Hour
	mustTake(t, m, h)
	mustTake(t, m, h)
	for i := range uint64(20_000) {
		if i%1000 == 0 {
			c.advance(time.Minute)
		}
		mustTake(t, m, hitOf(100+i, limitOf(SlidingLog, 5, time.Minute), 1))
	}
	refusal(t, "after 20 000 others", mustTake(t, m, h)[0], 40*time.Minute, true)
}
