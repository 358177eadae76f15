package limiter

import (
	"fmt"
	"testing"
	"time"
)

// TestEveryPairOfOldAndNewNumbersActsAtOnceAndItsWaitsStayTrue spends some of a limit, changes its numbers and asks again at
// the same instant: what was spent counts, no more and no less. Who is refused then passes after his wait and not a tick
// earlier, whatever he tries meanwhile. D92
func TestEveryPairOfOldAndNewNumbersActsAtOnceAndItsWaitsStayTrue(t *testing.T) {
	quotas, windows := []uint32{1, 2, 5, 33, 100}, []time.Duration{10 * time.Second, 7 * time.Second, time.Hour}
	if long() {
		quotas = []uint32{1, 2, 3, 5, 8, 31, 32, 33, 64, 100, 1000}
		windows = append(windows, time.Second, 61*time.Second, 24*time.Hour)
	}
	changes := 0
	overAlgorithms(t, func(t *testing.T, s Store, c *clock, a Algorithm) {
		key, numbers := uint64(a)<<32, numbersOf(a, quotas, windows)
		for _, before := range numbers {
			for _, after := range numbers {
				for _, used := range []uint32{before.Quota, (before.Quota + 1) / 2} {
					key++
					changes++
					change(t, s, c, key, before, after, used)
				}
			}
		}
	})
	t.Attr("figures", fmt.Sprint(changes, " changes of the numbers"))
}

// numbersOf are limits of one bucket. The windows of a calendar are its periods.
func numbersOf(a Algorithm, quotas []uint32, windows []time.Duration) (limits []Limit) {
	for _, quota := range quotas {
		for i, window := range windows {
			l := limitOf(a, quota, window)
			if a == CalendarWindow {
				l.Calendar.Period = Period(1 + i%4)
				l.Window = l.Calendar.Longest()
			}
			limits = append(limits, l)
		}
	}
	return limits
}

// change takes used units under one limit, and then asks under another.
func change(t *testing.T, s Store, c *clock, key uint64, before, after Limit, used uint32) {
	t.Helper()
	c.ms.Store(aligned + int64(key%1000)*61_357)
	expect(t, "before the change", mustTake(t, s, hitOf(key, before, used))[0], true, before.Quota-used)
	d := mustTake(t, s, hitOf(key, after, 1))[0]
	what := fmt.Sprintf("%d of %d in %v, then %d in %v", used, before.Quota, before.Window, after.Quota, after.Window)
	if passes := used < after.Quota; d.Allowed != passes || passes && d.Remaining != after.Quota-used-1 {
		t.Fatalf("%s at %v: %+v", what, c.time().UTC(), d)
	}
	if d.Allowed {
		return
	}
	end := c.time().Add(d.RetryAfter)
	for _, earlier := range []time.Duration{d.RetryAfter / 2, d.RetryAfter / 4, time.Millisecond} {
		if earlier >= end.Sub(c.time()) {
			continue
		}
		c.ms.Store(end.Add(-earlier).UnixMilli())
		if d := mustTake(t, s, hitOf(key, after, 1))[0]; d.Allowed || !c.time().Add(d.RetryAfter).Equal(end) {
			t.Fatalf("%s: promised for %v, at %v %+v", what, end, c.time(), d)
		}
	}
	c.ms.Store(end.UnixMilli())
	if d := mustTake(t, s, hitOf(key, after, 1))[0]; !d.Allowed {
		t.Fatalf("%s: promised for %v, then %+v", what, end, d)
	}
}
