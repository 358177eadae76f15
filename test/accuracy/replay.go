package main

import (
	"context"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// The window of every limit here. Only quota and load matter: a longer window is the same picture drawn more slowly.
const (
	window   = time.Minute
	windowMS = int64(window / time.Millisecond)
)

// algorithms are those that are compared, the exact log first.
var algorithms = []limiter.Algorithm{
	limiter.SlidingLog, limiter.GroupedLog, limiter.SlidingCounter, limiter.TokenBucket, limiter.FixedWindow,
}

// limitOf is a limit of that many units a window; a token bucket may spend them all at once.
func limitOf(a limiter.Algorithm, quota int) limiter.Limit {
	l := limiter.Limit{Algorithm: a, Quota: uint32(quota), Window: window, Tick: limiter.TickFor(uint32(quota), window, 0)}
	if a == limiter.TokenBucket {
		l.Burst = l.Quota
	}
	return l
}

// bucket is one bucket of a memory store whose clock stands where the last take put it.
type bucket struct {
	store *limiter.Memory
	now   int64 // ms since the Unix epoch
	hits  []limiter.Hit
}

func newBucket(l limiter.Limit, cost uint32) *bucket {
	b := &bucket{hits: []limiter.Hit{{Rule: "accuracy", Limit: l, Cost: cost}}}
	b.store = limiter.NewMemory(limiter.MemoryOptions{Now: func() time.Time { return time.UnixMilli(b.now) }})
	return b
}

// take asks the bucket at that time, in ms since the Unix epoch.
func (b *bucket) take(at int64) limiter.Decision {
	b.now = at
	decisions, _ := b.store.Take(context.Background(), b.hits) // the memory store never fails
	return decisions[0]
}

// sliding counts what lies in the window that ends now, by keeping all of it: the truth that the algorithms are held
// against, and no part of them. The zero value is empty.
type sliding struct {
	times []int64 // ms, the oldest first
	gone  int     // how many of them have left the window
}

// count is the number of events in the window that ends at that time. Times must not go back.
func (s *sliding) count(at int64) int64 {
	for s.gone < len(s.times) && at-s.times[s.gone] >= windowMS {
		s.gone++
	}
	return int64(len(s.times) - s.gone)
}

func (s *sliding) add(at int64) { s.times = append(s.times, at) }

// outcome is how an algorithm did on one trace. All but the peak and MostFree are numbers of requests.
type outcome struct {
	Requests, Admitted int64
	WronglyAdmitted    int64 // although the window already held the quota
	WronglyRefused     int64 // although the window held less than the quota
	Peak               int64 // the most that any window held
	MostFree           int64 // the most places that were free at a refusal
}

// add puts the requests of another client, with a bucket of its own, beside those counted so far.
func (o *outcome) add(other outcome) {
	o.Requests += other.Requests
	o.Admitted += other.Admitted
	o.WronglyAdmitted += other.WronglyAdmitted
	o.WronglyRefused += other.WronglyRefused
	o.Peak = max(o.Peak, other.Peak)
	o.MostFree = max(o.MostFree, other.MostFree)
}

// replay sends one client's requests, at those times, through a bucket of that limit. It is a closed loop: what the window
// holds is what the algorithm itself has admitted. A client that is refused goes on as the trace says.
func replay(l limiter.Limit, times []int64) outcome {
	b, admitted, o := newBucket(l, 1), sliding{}, outcome{Requests: int64(len(times))}
	for _, at := range times {
		free := int64(l.Quota) - admitted.count(at)
		if b.take(at).Allowed {
			admitted.add(at)
			o.Admitted++
			if free <= 0 {
				o.WronglyAdmitted++
			}
			o.Peak = max(o.Peak, int64(l.Quota)-free+1)
			continue
		}
		if free > 0 {
			o.WronglyRefused++
		}
		o.MostFree = max(o.MostFree, free)
	}
	return o
}

// compare replays the clients' requests with each of the algorithms, in their order.
func compare(quota int, clients ...[]int64) []outcome {
	outcomes := make([]outcome, len(algorithms))
	for i, a := range algorithms {
		for _, times := range clients {
			outcomes[i].add(replay(limitOf(a, quota), times))
		}
	}
	return outcomes
}
