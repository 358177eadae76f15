package limiter

import "time"

// bucket is the state of one key under one algorithm; its zero value does not exist yet, and is full. Times are the
// store's clock in ms since the Unix epoch, ≥ 0. The methods must not be called for a hit that NeverPasses.
type bucket interface {
	// look decides a hit of that cost and changes nothing. The decision tells what is left once the hit is spent.
	look(l law, cost uint32, now int64) Decision
	// spend spends a hit that look has just allowed.
	spend(l law, cost uint32, now int64)
	// refuse makes what a refusal promised come true: the bucket is kept until the wait is over, at least.
	refuse(l law, wait time.Duration, now int64)
	// full is the time from which the bucket is full if nothing more is spent; now if it is full.
	full(l law, now int64) int64
	// expires is the time from which the bucket is as good as missing; 0 if it does not exist.
	expires() int64
}

// newBucket returns an empty state for that algorithm, which must be one of the five.
func newBucket(a Algorithm) bucket {
	switch a {
	case GroupedLog:
		return new(groupedLog)
	case SlidingCounter:
		return new(slidingCounter)
	case TokenBucket:
		return new(tokenBucket)
	case FixedWindow:
		return new(fixedWindow)
	}
	return new(slidingLog)
}

// take decides the hits at one instant against their buckets and spends them, as Store.Take describes. buckets[i] belongs
// to hits[i]; it is not touched, and may be nil, if the hit NeverPasses. decisions has the length of hits.
func take(hits []Hit, buckets []bucket, now int64, decisions []Decision) {
	refused := false
	for i := range hits {
		h := &hits[i]
		if h.Limit.NeverPasses(h.Cost) {
			decisions[i] = Decision{RetryAfter: Never}
		} else {
			decisions[i] = buckets[i].look(h.Limit.law(), h.Cost, now)
		}
		refused = refused || !h.Shadow && !decisions[i].Allowed
	}
	for i := range hits {
		h, d := &hits[i], &decisions[i]
		switch {
		case d.RetryAfter == Never:
		case !d.Allowed:
			buckets[i].refuse(h.Limit.law(), d.RetryAfter, now)
		case h.Shadow || !refused:
			buckets[i].spend(h.Limit.law(), h.Cost, now)
		default:
			*d = buckets[i].look(h.Limit.law(), 0, now)
		}
	}
}
