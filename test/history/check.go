// Package history proves of the log of a run that no window of time held more than its quota.
//
// A general checker of linearizability (porcupine) would need the instant of each decision, which nobody but the store
// knows: a log's answer depends on it, and not on the order of the takes alone. It would have to guess it for each of the
// many requests that overlap. What is to be proven, that nothing passes above the quota, needs no guess.
package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Admission is a hit that passed, as its client saw it.
type Admission struct {
	// Sent and Received enclose the instant at which the store decided. They are read from the clock by which it decides,
	// and count from any fixed moment.
	Sent, Received time.Duration
	// Units is what the hit spent: ≥ 1.
	Units uint32
	// Quota is the largest that may have been in force for the hit between Sent and Received.
	Quota uint32
}

// Window is a stretch of time, both ends included, and what passed in it for certain. The zero value holds nothing.
type Window struct {
	Begin, End time.Duration
	Units      uint64
	// Quota bounds Units: it is the largest of those hits that may have been decided last.
	Quota uint64
}

// Broken reports whether more passed than the quota allows.
func (w Window) Broken() bool { return w.Units > w.Quota }

// fuller reports whether w is closer to its quota than v, or further above.
func (w Window) fuller(v Window) bool {
	return w.Units*v.Quota > v.Units*w.Quota || v.Quota == 0 && w.Units > v.Units
}

// Fullest returns, of all stretches of the limit's window, the one that comes closest to its quota or is furthest above. The
// log is that of one bucket, in any order; length and tick are the limit's window, unchanged throughout, and the unit in
// which the bucket counts time.
//
// The claim that it tests: take hits whose intervals lie wholly within length−tick, so that at the decision of the last of
// them all the others count. Then their units are at most the quota of that last one. Which hit was the last is known only
// as far as the intervals tell; so for each quota q, the hits under a larger one are left out unless they were answered
// before one of the others was sent. Whichever was the last then had q at most.
func Fullest(log []Admission, length, tick time.Duration) Window {
	s := newSweep(log)
	var fullest Window
	for _, quota := range s.quotas() {
		if w := s.fullest(quota, length-tick); w.fuller(fullest) {
			fullest = w
		}
	}
	return fullest
}

// sweep holds a log in two orders.
type sweep struct {
	bySent   []Admission     // the newest first
	received []time.Duration // the oldest first
}

func newSweep(log []Admission) *sweep {
	s := &sweep{bySent: slices.Clone(log)}
	slices.SortFunc(s.bySent, func(a, b Admission) int { return cmp.Compare(b.Sent, a.Sent) })
	for _, a := range log {
		s.received = append(s.received, a.Received)
	}
	slices.Sort(s.received)
	return s
}

func (s *sweep) quotas() []uint32 {
	var quotas []uint32
	for _, a := range s.bySent {
		quotas = append(quotas, a.Quota)
	}
	slices.Sort(quotas)
	return slices.Compact(quotas)
}

// before is how many hits were received before t.
func (s *sweep) before(t time.Duration) int {
	n, _ := slices.BinarySearch(s.received, t)
	return n
}

// fullest is Fullest for one quota: a window that is broken without another one being so begins where a hit was sent.
func (s *sweep) fullest(quota uint32, span time.Duration) Window {
	var fullest Window
	n := len(s.bySent)
	low, high, newest := make(sums, n), make(sums, n), newMaxima(n) // by place in received
	for i, a := range s.bySent {
		if place := s.before(a.Received); a.Quota <= quota {
			low.add(place, uint64(a.Units))
			newest.raise(place, a.Sent)
		} else {
			high.add(place, uint64(a.Units))
		}
		if i+1 < n && s.bySent[i+1].Sent == a.Sent {
			continue
		}
		end := s.before(a.Sent + span + 1)
		w := Window{Begin: a.Sent, End: a.Sent + span, Quota: uint64(quota), Units: low.first(end)}
		if w.Units == 0 {
			continue
		}
		w.Units += high.first(s.before(newest.first(end)))
		if w.fuller(fullest) {
			fullest = w
		}
	}
	return fullest
}

// sums is a Fenwick tree: it adds to any place and sums up the first of them in logarithmic time.
type sums []uint64

func (s sums) add(place int, units uint64) {
	for i := place + 1; i <= len(s); i += i & -i {
		s[i-1] += units
	}
}

// first is the sum of the first n places.
func (s sums) first(n int) (sum uint64) {
	for ; n > 0; n &= n - 1 {
		sum += s[n-1]
	}
	return sum
}

// maxima is a Fenwick tree of the largest instead of the sum.
type maxima []time.Duration

func newMaxima(n int) maxima { return slices.Repeat(maxima{math.MinInt64}, n) }

func (m maxima) raise(place int, t time.Duration) {
	for i := place + 1; i <= len(m); i += i & -i {
		m[i-1] = max(m[i-1], t)
	}
}

// first is the largest of the first n places.
func (m maxima) first(n int) time.Duration {
	largest := time.Duration(math.MinInt64)
	for ; n > 0; n &= n - 1 {
		largest = max(largest, m[n-1])
	}
	return largest
}
