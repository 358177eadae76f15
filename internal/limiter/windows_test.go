package limiter

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// history is what passed of one bucket of a log, and the quotas it was under.
type history struct {
	algorithm Algorithm
	window    int64 // ms
	quota     uint32
	passed    []passed      // the oldest first
	changes   []quotaBefore // the oldest first
}

// quotaBefore is a quota and until when it was in force.
type quotaBefore struct {
	quota uint32
	until int64
}

// passed is a hit that passed.
type passed struct {
	at    int64
	units uint32
}

// use puts a quota in force.
func (h *history) use(quota uint32, now int64) {
	h.changes = append(h.changes, quotaBefore{h.quota, now})
	h.quota = quota
}

// free is how many places of the quota nothing has passed for within the window.
func (h *history) free(now int64) int64 {
	for len(h.passed) > 0 && now-h.passed[0].at >= h.window {
		h.passed = h.passed[1:]
	}
	free := int64(h.quota)
	for _, p := range h.passed {
		free -= int64(p.units)
	}
	return free
}

// slack is how many free places a refusal may overlook: those of the largest group that may still be in the window.
func (h *history) slack(now int64) int64 {
	if h.algorithm == SlidingLog {
		return 0
	}
	for len(h.changes) > 0 && now-h.changes[0].until >= h.window {
		h.changes = h.changes[1:]
	}
	largest := h.quota
	for _, c := range h.changes {
		largest = max(largest, c.quota)
	}
	return divUp(int64(largest), groups) - 1
}

// TestNoWindowOfALogHoldsMoreThanItsQuota: several rules, costs, shadow rules and quotas that change, in both stores. A grouped
// log refuses only when fewer than cost + ⌈quota/32⌉ − 1 places are free, a sliding log only when fewer than cost. D92
func TestNoWindowOfALogHoldsMoreThanItsQuota(t *testing.T) {
	steps := map[string]int{"memory": 20_000, "redis": 3000}
	if long() {
		steps = map[string]int{"memory": 2_000_000, "redis": 300_000}
	}
	overStores(t, func(t *testing.T, s Store, c *clock) {
		r := rand.New(rand.NewPCG(7, 7))
		var histories []*history
		for i, window := range []int64{400, 1000, 3000, 700, 5000, 1900} {
			histories = append(histories, &history{algorithm: Algorithm(1 + i%2), window: window, quota: 30})
		}
		refused, allowed := 0, 0
		n := steps[s.(interface{ Name() string }).Name()]
		for range n {
			c.ms.Add(r.Int64N(20) * r.Int64N(3))
			now := c.ms.Load()
			if r.IntN(300) == 0 {
				histories[r.IntN(len(histories))].use(uint32(1+r.IntN(150)), now)
			}
			asked := r.Perm(len(histories))[:1+r.IntN(3)]
			var hits []Hit
			for _, i := range asked {
				h := histories[i]
				l := Limit{Algorithm: h.algorithm, Quota: h.quota, Window: time.Duration(h.window) * time.Millisecond}
				hits = append(hits, hitOf(uint64(i), l, min(uint32(1+r.IntN(4)*r.IntN(4)), h.quota)))
				hits[len(hits)-1].Shadow = r.IntN(4) == 0
			}
			decisions := mustTake(t, s, hits...)
			verdict := Judge(hits, decisions)
			for j, i := range asked {
				h, d := histories[i], decisions[j]
				free, cost := h.free(now), int64(hits[j].Cost)
				if d.Allowed && free < cost || !d.Allowed && free >= cost+h.slack(now) {
					t.Fatalf("%v of %d in %d ms at %d, cost %d with %d places free: %+v", h.algorithm, h.quota, h.window, now, cost, free, d)
				}
				if d.Allowed && (verdict.Allowed || hits[j].Shadow) {
					h.passed = append(h.passed, passed{now, hits[j].Cost})
					allowed++
				} else {
					refused++
				}
			}
		}
		if allowed < n/5 || refused < n/5 {
			t.Errorf("%d hits spent, %d not: too few to prove anything", allowed, refused)
		}
		t.Attr("figures", fmt.Sprintf("%d takes: %d hits spent, %d not", n, allowed, refused))
	})
}
