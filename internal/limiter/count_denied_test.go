package limiter

import (
	"testing"
	"time"
)

// counted is the same hit, spent whoever refuses it.
func counted(h Hit) Hit {
	h.CountDenied = true
	return h
}

func TestACountedHitIsSpentWhoeverRefuses(t *testing.T) { // D1
	overAlgorithms(t, func(t *testing.T, s Store, _ *clock, a Algorithm) {
		base := 10 * uint64(a)
		attempts, narrow := counted(hitOf(base, limitOf(a, 10, time.Minute), 1)), hitOf(base+1, limitOf(a, 1, time.Minute), 1)
		plain := hitOf(base+2, limitOf(a, 10, time.Minute), 1)
		mustTake(t, s, attempts, narrow, plain)
		for i := range uint32(3) {
			d := mustTake(t, s, attempts, narrow, plain)
			expect(t, "attempts", d[0], true, 8-i)
			expect(t, "the narrow rule", d[1], false, 0)
			expect(t, "a rule that is not counted", d[2], true, 9)
		}
		expect(t, "a look at the attempts", mustTake(t, s, look(attempts))[0], true, 6)
	})
}

func TestACountedRefusalNeverSpendsMoreThanTheBucketHolds(t *testing.T) {
	overAlgorithms(t, func(t *testing.T, s Store, c *clock, a Algorithm) {
		base := 10 * uint64(a)
		h := counted(hitOf(base, limitOf(a, 10, time.Minute), 4))
		for i, remaining := range []uint32{6, 2, 0, 0, 0, 0} {
			expect(t, "cost 4", mustTake(t, s, h)[0], i < 2, remaining)
		}
		d := mustTake(t, s, h)[0]
		c.advance(d.RetryAfter - limitOf(a, 10, time.Minute).Tick)
		expect(t, "before it was told to come", mustTake(t, s, hitOf(base, h.Limit, 4))[0], false, 0)
		c.advance(limitOf(a, 10, time.Minute).Tick)
		if d := mustTake(t, s, hitOf(base, h.Limit, 4))[0]; !d.Allowed {
			t.Errorf("when it was told to come: %+v", d)
		}

		mustTake(t, s, counted(hitOf(base+1, h.Limit, 11))) // can never pass
		expect(t, "after a cost above the limit", mustTake(t, s, hitOf(base+1, h.Limit, 1))[0], false, 0)
		mustTake(t, s, counted(look(hitOf(base+2, h.Limit, 0))))
		expect(t, "after a look", mustTake(t, s, hitOf(base+2, h.Limit, 0))[0], true, 10)
	})
}

// TestALogKeepsTheNewestOfWhatIsCounted polls a full log: as long as the client does not stop, nothing passes.
func TestALogKeepsTheNewestOfWhatIsCounted(t *testing.T) {
	for _, a := range []Algorithm{SlidingLog, GroupedLog} {
		overStores(t, func(t *testing.T, s Store, c *clock) {
			h := counted(hitOf(uint64(a), limitOf(a, 5, 10*time.Second), 1))
			for range 5 {
				mustTake(t, s, h)
			}
			for range 30 {
				c.advance(time.Second)
				if d := mustTake(t, s, h)[0]; d.Allowed || d.RetryAfter < 6*time.Second {
					t.Fatalf("%v: %+v", a, d)
				}
			}
			c.advance(5 * time.Second)
			expect(t, "one second early", mustTake(t, s, look(h))[0], false, 0)
			c.advance(time.Second)
			expect(t, "in time", mustTake(t, s, h)[0], true, 0)
		})
	}
}

func TestTheRetryAfterOfARefusedRequestCoversWhatItWasCountedFor(t *testing.T) {
	overStores(t, func(t *testing.T, s Store, c *clock) {
		attempts := counted(hitOf(1, limitOf(SlidingLog, 2, 30*time.Second), 1))
		short := hitOf(2, limitOf(SlidingLog, 1, time.Second), 1)
		hits := []Hit{attempts, short}
		mustTake(t, s, hits...)
		v := Judge(hits, mustTake(t, s, hits...))
		if v.Allowed || v.Speaker != 1 || v.RetryAfter != 30*time.Second {
			t.Fatalf("%+v, want a wait for the attempts, which the refusal used up", v)
		}
		c.advance(v.RetryAfter)
		if v := Judge(hits, mustTake(t, s, hits...)); !v.Allowed {
			t.Errorf("then: %+v", v)
		}
	})
}
