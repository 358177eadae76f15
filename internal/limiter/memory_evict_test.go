package limiter

import (
	"context"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// lasting is a limit whose buckets are full again only after a thousand windows, long after a refusal has lapsed.
func lasting(window time.Duration) Limit {
	return Limit{Algorithm: TokenBucket, Quota: 1, Window: window, Burst: 1000, Tick: time.Millisecond}
}

// exhaust spends all the units that the limit gives the key, and is refused one more.
func exhaust(t *testing.T, m *Memory, key uint64, l Limit) {
	t.Helper()
	expect(t, "all at once", mustTake(t, m, hitOf(key, l, max(l.Quota, l.Burst)))[0], true, 0)
	expect(t, "one more", mustTake(t, m, hitOf(key, l, 1))[0], false, 0)
}

// D80
func TestARefusedClientIsKeptWhileRefusalsUnderShorterWindowsHaveLapsed(t *testing.T) {
	m, c := newSmallMemory(3)
	hour := limitOf(SlidingLog, 1, time.Hour)
	exhaust(t, m, 1, hour)
	exhaust(t, m, 2, lasting(time.Second))
	exhaust(t, m, 3, lasting(time.Second))
	c.advance(10 * time.Second)
	for key := uint64(4); key <= 5; key++ {
		exhaust(t, m, key, hour)
	}
	if known(m, 2) || known(m, 3) || m.Evictions() != (Evictions{Idle: 2}) {
		t.Errorf("evictions %+v, want the two whose refusal has lapsed", m.Evictions())
	}
	expect(t, "refused within its hour", mustTake(t, m, hitOf(1, hour, 1))[0], false, 0)
}

// D80
func TestABucketWhoseRefusalHasLapsedGoesInTheOrderInWhichItWasAsked(t *testing.T) {
	m, c := newSmallMemory(3)
	hour := limitOf(SlidingLog, 5, time.Hour)
	const first, lapsed, last = 1, 2, 3
	mustTake(t, m, hitOf(first, hour, 1))
	c.advance(20 * time.Minute)
	exhaust(t, m, lapsed, lasting(time.Second))
	c.advance(2 * time.Second)
	mustTake(t, m, hitOf(last, hour, 1))
	for i, forgotten := range []uint64{first, lapsed, last} {
		c.advance(time.Second)
		mustTake(t, m, hitOf(10+uint64(i), hour, 1))
		if known(m, forgotten) || m.Evictions() != (Evictions{Idle: uint64(i + 1)}) {
			t.Fatalf("key %d known %v, evictions %+v", forgotten, known(m, forgotten), m.Evictions())
		}
	}
}

func TestARefusalUnderAShorterWindowLapsesWithThatWindow(t *testing.T) {
	m, c := newSmallMemory(2)
	exhaust(t, m, 1, lasting(time.Hour))
	exhaust(t, m, 2, lasting(time.Hour))
	mustTake(t, m, hitOf(2, lasting(time.Second), 1000)) // refused, after a reload
	c.advance(2 * time.Second)
	mustTake(t, m, hitOf(3, lasting(time.Hour), 1))
	if !known(m, 1) || known(m, 2) || m.Evictions() != (Evictions{Idle: 1}) {
		t.Errorf("evictions %+v, want the bucket whose refusal lapsed after a second", m.Evictions())
	}
}

// D80
func TestABucketAskedAgainAfterItsRefusalLapsedIsTheLastToGo(t *testing.T) {
	m, c := newSmallMemory(2)
	exhaust(t, m, 1, lasting(time.Second))
	c.advance(2 * time.Second)
	mustTake(t, m, hitOf(2, lasting(time.Hour), 1))
	c.advance(2 * time.Second)
	expect(t, "some are back", mustTake(t, m, hitOf(1, lasting(time.Second), 1))[0], true, 3)
	mustTake(t, m, hitOf(3, lasting(time.Hour), 1))
	if !known(m, 1) || known(m, 2) {
		t.Errorf("evictions %+v, want the bucket asked 2 s ago", m.Evictions())
	}
}

// D80
func TestNoBucketIsForgottenInPlaceOfOneThatWouldBeMissedLess(t *testing.T) {
	const lateness = 30_000 / 16 // of the wheel, with the longest window, ms
	rapid.Check(t, func(t *rapid.T) {
		m, c := newSmallMemory(5)
		for range rapid.IntRange(1, 200).Draw(t, "takes") {
			c.advance(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			key := rapid.Uint64Range(0, 9).Draw(t, "key")
			window := time.Duration(rapid.SampledFrom([]int{1, 5, 30}).Draw(t, "seconds")) * time.Second
			cost := rapid.SampledFrom([]uint32{1, 1000}).Draw(t, "cost")
			kept, before := maps.Clone(m.entries), m.Evictions()
			_, _ = m.Take(context.Background(), []Hit{hitOf(key, lasting(window), cost)})

			maps.DeleteFunc(kept, func(k Key, e *entry) bool { return m.entries[k] == e })
			for _, forgotten := range kept { // one at most
				switch after, now := m.Evictions(), c.time().UnixMilli(); {
				case after.Idle > before.Idle:
					if e := m.idle.front(); e.asked < forgotten.asked {
						t.Fatalf("%+v was asked after %+v, which is kept", forgotten, e)
					}
				case after.Refused > before.Refused:
					for k, e := range m.entries {
						if k != keyOf(key) && now >= e.refusedUntil+lateness {
							t.Fatalf("%+v was refused within its window, %+v was not and is kept", forgotten, e)
						}
					}
				}
			}
		}
	})
}
