package main

import (
	"math/rand/v2"
	"slices"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// spell is a number of requests spread evenly over a time: a burst if the time is short, pressure if it is long.
type spell struct {
	from, span int64 // ms; from is counted from the start of the schedule
	requests   int
}

// attempt is what an adversary does within four windows.
type attempt [4]spell

// randomSpell draws a spell anywhere in the attempt, or with its beginning or end within 5 ms of a boundary.
func randomSpell(r *rand.Rand, quota int) spell {
	s := spell{requests: 1 + r.IntN(2*quota)}
	switch r.IntN(3) {
	case 0: // a burst
	case 1:
		s.span = 1 + r.Int64N(1000)
	default:
		s.span = 1 + r.Int64N(windowMS)
	}
	s.from = r.Int64N(4 * windowMS)
	if near := (1+r.Int64N(3))*windowMS + r.Int64N(11) - 5; r.IntN(2) == 0 {
		s.from = near
		if r.IntN(2) == 0 {
			s.from -= s.span
		}
	}
	return s
}

func randomAttempt(r *rand.Rand, quota int) attempt {
	var a attempt
	for i := range a {
		a[i] = randomSpell(r, quota)
	}
	return a
}

func (a attempt) times() []int64 {
	var times []int64
	for _, s := range a {
		times = append(times, steady(start+windowMS+s.from, s.span, s.requests)...)
	}
	slices.Sort(times)
	return times
}

// worst is what an adversary found against one algorithm.
type worst struct {
	peak        int64   // the most that any window held
	least, most float64 // admissions relative to the exact log on the same requests
	mostFree    int64   // the most places that were free at a refusal
}

// attack searches for the highest peak: it changes one spell of the best attempt so far and keeps what is no worse, and
// begins anew after every hundredth try.
func attack(a limiter.Algorithm, quota, tries int) worst {
	r := source("adversary of "+a.String(), quota)
	w := worst{least: 1, most: 1}
	var best attempt
	var peak int64
	for i := range tries {
		next := best
		if i%100 == 0 {
			next, peak = randomAttempt(r, quota), 0
		} else {
			next[r.IntN(len(next))] = randomSpell(r, quota)
		}
		times := next.times()
		o, exact := replay(limitOf(a, quota), times), replay(limitOf(limiter.SlidingLog, quota), times)
		if o.Peak >= peak {
			best, peak = next, o.Peak
		}
		relative := float64(o.Admitted) / float64(exact.Admitted)
		w.peak, w.mostFree = max(w.peak, o.Peak), max(w.mostFree, o.MostFree)
		w.least, w.most = min(w.least, relative), max(w.most, relative)
	}
	return w
}
