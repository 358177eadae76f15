package limiter

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func newSmallMemory(maxKeys int) (*Memory, *clock) {
	c := newClock()
	return NewMemory(MemoryOptions{MaxKeys: maxKeys, Now: c.time}), c
}

// known reports whether the store still has the bucket of that key.
func known(m *Memory, key uint64) bool { return m.entries[keyOf(key)] != nil }

// D80
func TestAClientOverItsLimitIsNotForgottenBecauseOfManyRandomKeys(t *testing.T) {
	m, c := newSmallMemory(1000)
	l := limitOf(SlidingLog, 5, time.Hour)
	for range 6 {
		mustTake(t, m, hitOf(0, l, 1))
	}
	for i := range uint64(100_000) {
		mustTake(t, m, hitOf(1+i, l, 1))
		if n := m.Keys(); n > 1000 {
			t.Fatalf("%d keys after %d hits, want at most 1000", n, i)
		}
		if i%1000 == 0 {
			c.advance(time.Second)
		}
	}
	expect(t, "the client over its limit", mustTake(t, m, hitOf(0, l, 1))[0], false, 0)
	if got, want := m.Evictions(), (Evictions{Idle: 100_001 - 1000}); got != want {
		t.Errorf("evictions %+v, want %+v", got, want)
	}
}

// D80
func TestRoomIsMadeByTheLeastHarmfulEviction(t *testing.T) {
	m, c := newSmallMemory(4)
	minute, brief, quick := limitOf(SlidingLog, 1, time.Minute), limitOf(SlidingLog, 1, time.Second), limitOf(SlidingLog, 1, 10*time.Second)
	const refused, old, expired, full = 1, 2, 3, 4
	mustTake(t, m, hitOf(refused, minute, 1))
	mustTake(t, m, hitOf(refused, minute, 1))
	mustTake(t, m, hitOf(old, minute, 1))
	mustTake(t, m, hitOf(full, quick, 1))
	mustTake(t, m, hitOf(expired, brief, 1))
	c.advance(11 * time.Second) // expired is gone after 3 s, full is full again but would be kept for another second

	for i, want := range []struct {
		forgotten uint64
		counts    Evictions
	}{
		{expired, Evictions{Expired: 1}},
		{full, Evictions{Expired: 1, Full: 1}},
		{old, Evictions{Expired: 1, Full: 1, Idle: 1}},
	} {
		mustTake(t, m, hitOf(10+uint64(i), minute, 1))
		if known(m, want.forgotten) || m.Evictions() != want.counts {
			t.Fatalf("new bucket %d: key %d known %v, evictions %+v", i, want.forgotten, known(m, want.forgotten), m.Evictions())
		}
	}
	for i := range uint64(3) { // the new ones are refused in turn
		mustTake(t, m, hitOf(10+i, minute, 1))
	}
	mustTake(t, m, hitOf(20, minute, 1))
	if known(m, refused) || !known(m, 20) || m.Evictions().Refused != 1 {
		t.Errorf("among refused buckets the one refused longest ago must go: %+v", m.Evictions())
	}
}

func TestABucketRefusedLongAgoIsIdleAgain(t *testing.T) {
	m, c := newSmallMemory(2)
	// Full again only after ten windows, so that its window passes before.
	slow := Limit{Algorithm: TokenBucket, Quota: 1, Window: time.Minute, Burst: 10, Tick: time.Millisecond}
	mustTake(t, m, hitOf(1, slow, 10))
	mustTake(t, m, hitOf(1, slow, 10))
	c.advance(time.Minute)
	mustTake(t, m, hitOf(2, slow, 1))
	mustTake(t, m, hitOf(3, slow, 1))
	if known(m, 1) || m.Evictions() != (Evictions{Idle: 1}) {
		t.Errorf("evictions %+v, want the bucket that was refused a window ago", m.Evictions())
	}
}

func TestAnAllowedHitDoesNotEndAClientsTimeAsRefused(t *testing.T) {
	m, c := newSmallMemory(2)
	l := limitOf(SlidingLog, 2, time.Minute)
	mustTake(t, m, hitOf(1, l, 1))
	c.advance(40 * time.Second)
	mustTake(t, m, hitOf(1, l, 1))
	mustTake(t, m, hitOf(1, l, 1)) // refused
	c.advance(30 * time.Second)
	expect(t, "freed place", mustTake(t, m, hitOf(1, l, 1))[0], true, 0)
	for i := range uint64(10) {
		mustTake(t, m, hitOf(10+i, l, 1))
	}
	expect(t, "still known", mustTake(t, m, hitOf(1, l, 1))[0], false, 0)
}

func TestExpiredBucketsGoInTheCourseOfTakes(t *testing.T) {
	m, c := newSmallMemory(10_000)
	l := limitOf(SlidingLog, 5, time.Second)
	for i := range uint64(1000) {
		mustTake(t, m, hitOf(i, l, 1))
	}
	c.advance(time.Hour)
	for range 2 * 1000 / sweepPerHit {
		mustTake(t, m, hitOf(0, l, 0))
	}
	if n := m.Keys(); n != 0 {
		t.Errorf("%d keys are left, want none", n)
	}
	if got := m.Evictions(); got != (Evictions{Expired: 1000}) {
		t.Errorf("evictions %+v, want 1000 expired", got)
	}
}

func TestABucketInUseIsNeverDroppedByTheSweep(t *testing.T) {
	m, c := newSmallMemory(100)
	l := limitOf(SlidingLog, 10, 10*time.Second)
	for i := range 500 {
		d := mustTake(t, m, hitOf(1, l, 1))[0]
		if want := uint32(max(0, 9-i)); i < 10 && d.Remaining != want || i >= 10 && d.Remaining != 0 {
			t.Fatalf("hit %d: %+v", i, d)
		}
		c.advance(time.Second)
	}
	if m.Keys() != 1 || m.Evictions() != (Evictions{}) {
		t.Errorf("%d keys, evictions %+v", m.Keys(), m.Evictions())
	}
}

func TestARequestOfMoreBucketsThanFitIsDecided(t *testing.T) {
	m, _ := newSmallMemory(1)
	l := limitOf(SlidingLog, 1, time.Minute)
	for _, d := range mustTake(t, m, hitOf(1, l, 1), hitOf(2, l, 1), hitOf(3, l, 1)) {
		expect(t, "each", d, true, 0)
	}
	if m.Keys() != 1 || !known(m, 3) {
		t.Errorf("%d keys, want the last", m.Keys())
	}
	mustTake(t, m, hitOf(2, l, 1), hitOf(3, l, 1)) // 3 is refused, and so 2 is not spent
	expect(t, "key 3", mustTake(t, m, hitOf(3, l, 1))[0], false, 0)
}

func TestRefusalsAndLooksKeepNoBucket(t *testing.T) {
	m, _ := newSmallMemory(10)
	l := limitOf(SlidingLog, 1, time.Minute)
	mustTake(t, m, hitOf(1, l, 0), hitOf(2, l, 2))
	mustTake(t, m, hitOf(3, l, 1), hitOf(4, l, 2)) // 4 can never pass, so 3 is not spent
	if n := m.Keys(); n != 0 {
		t.Errorf("%d keys, want none", n)
	}
}

// D69
func TestAClockThatStepsLocksNobodyOutForMoreThanAWindow(t *testing.T) {
	for i, name := range Algorithms {
		t.Run(name, func(t *testing.T) {
			m, c := newSmallMemory(100)
			l := limitOf(Algorithm(i+1), 5, time.Minute)
			h := hitOf(1, l, 1)
			mustTake(t, m, hitOf(1, l, 5))
			for _, step := range []time.Duration{10 * time.Second, -600 * time.Second, 3600 * time.Second, -30 * time.Second} {
				before := mustTake(t, m, hitOf(1, l, 0))[0]
				c.advance(step)
				after := mustTake(t, m, hitOf(1, l, 0))[0]
				if after.Remaining < before.Remaining {
					t.Errorf("a step of %v took units: %d left, then %d", step, before.Remaining, after.Remaining)
				}
				if d := mustTake(t, m, h)[0]; d.RetryAfter > l.Lifetime()+time.Minute {
					t.Errorf("after a step of %v: refused for %v", step, d.RetryAfter)
				}
			}
			c.advance(l.Lifetime() + time.Minute)
			if d := mustTake(t, m, h)[0]; !d.Allowed {
				t.Errorf("locked out: %+v", d)
			}
		})
	}
}

func TestTheStoreRunsOnTheMonotonicClock(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	if d := time.Until(m.now()); d > time.Second || d < -time.Second {
		t.Errorf("the store's clock is %v from the wall clock", d)
	}
	first := m.now()
	if second := m.now(); second.Before(first) {
		t.Errorf("%v, then %v", first, second)
	}
}

func TestEveryBucketHasItsPlaceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, c := newSmallMemory(10)
		for range rapid.IntRange(1, 200).Draw(t, "takes") {
			c.advance(time.Duration(rapid.IntRange(-2000, 4000).Draw(t, "ms")) * time.Millisecond)
			hits := make([]Hit, rapid.IntRange(1, 3).Draw(t, "hits"))
			for i := range hits {
				a := Algorithm(rapid.IntRange(1, len(Algorithms)).Draw(t, "algorithm"))
				key := uint64(a)<<8 | uint64(i)<<4 | rapid.Uint64Range(0, 3).Draw(t, "key")
				window := time.Duration(rapid.IntRange(1, 3).Draw(t, "seconds")) * time.Second
				hits[i] = hitOf(key, limitOf(a, 3, window), rapid.Uint32Range(0, 4).Draw(t, "cost"))
			}
			_, _ = m.Take(context.Background(), hits)
			listed := 0
			for _, l := range []*list{&m.idle, &m.lapsed, &m.refused, &m.full} {
				for n := l.root.next; n != &l.root; n = n.next {
					listed++
					e := n.entry
					if m.entries[e.key] != e || e.due.next == nil || e.isFull != (l == &m.full) {
						t.Fatalf("an entry that is lost: %+v", e)
					}
					if !e.isFull && (e.refusedUntil != 0) != (l == &m.refused) || l == &m.refused && e.asked >= e.refusedUntil {
						t.Fatalf("an entry in the wrong list: %+v", e)
					}
				}
			}
			if listed != len(m.entries) || listed > m.maxKeys {
				t.Fatalf("%d entries, %d listed", len(m.entries), listed)
			}
		}
	})
}

func TestTheWheelIsNeverEarlyAndAtMostASixteenthLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wheel
		now := int64(1_900_000_000_000)
		w.init(now)
		waiting := make(map[*entry]int64)
		latest := make(map[*entry]int64)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			for range rapid.IntRange(0, 5).Draw(t, "entries") {
				e := new(entry)
				e.due.entry = e
				delay := int64(1) << rapid.IntRange(0, 38).Draw(t, "magnitude")
				delay += rapid.Int64Range(0, delay-1).Draw(t, "rest")
				w.add(e, now+delay)
				waiting[e], latest[e] = now+delay, now+delay+max(16, delay/16)
			}
			step := int64(1) << rapid.IntRange(0, 39).Draw(t, "step")
			now += rapid.Int64Range(0, step).Draw(t, "advance")
			w.advance(now)
			for e := w.due.front(); e != nil; e = w.due.front() {
				if now < waiting[e] {
					t.Fatalf("due %d ms early", waiting[e]-now)
				}
				e.due.unlink()
				delete(waiting, e)
			}
			for e := range waiting {
				if now > latest[e] {
					t.Fatalf("%d ms late", now-waiting[e])
				}
			}
		}
	})
}

func BenchmarkMemoryTakeOfAHotKey(b *testing.B) {
	m := NewMemory(MemoryOptions{})
	hits := []Hit{hitOf(1, limitOf(SlidingLog, 100, time.Second), 1)}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = m.Take(b.Context(), hits)
	}
}

func BenchmarkMemoryTakeOfNewKeysInAFullStore(b *testing.B) {
	m := NewMemory(MemoryOptions{MaxKeys: 100_000})
	hits := []Hit{hitOf(1, limitOf(SlidingLog, 100, time.Minute), 1)}
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		hits[0].Key = keyOf(i)
		_, _ = m.Take(b.Context(), hits)
	}
}
