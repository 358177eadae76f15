package limiter

import "time"

// bucket is the state of one key under one algorithm; its zero value does not exist yet, and is full. Times are the
// store's clock in ms since the Unix epoch, ≥ 0. look, spend and refuse must not be called for a hit that NeverPasses.
type bucket interface {
	// held says for how long the bucket is kept, and how long it is banned.
	held() *lease
	// look decides a hit of that cost and changes nothing. The decision tells what is left once the hit is spent.
	look(l law, cost uint32, now int64) Decision
	// spend spends a hit that look has just allowed.
	spend(l law, cost uint32, now int64)
	// count spends as much of a hit as the bucket has room for. A log makes the room: it keeps the newest units.
	count(l law, cost uint32, now int64)
	// refuse makes what a refusal promised come true: the bucket is kept until the wait is over, at least.
	refuse(l law, wait time.Duration, now int64)
	// full is the time from which the bucket is full if nothing more is spent; now if it is full.
	full(l law, now int64) int64
}

// newBucket returns an empty state for that algorithm, which must be one of the six.
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
	case CalendarWindow:
		return new(calendarWindow)
	}
	return new(slidingLog)
}

// untouched reports whether no bucket is needed to decide the hit, nor changed by it.
func (h *Hit) untouched() bool {
	return h.Limit.NeverPasses(h.Cost) && !(h.CountDenied && h.Limit.Quota > 0)
}

// take decides the hits at one instant against their buckets and spends them, as Store.Take describes. buckets[i] belongs
// to hits[i]; it may be nil if the hit leaves it untouched. decisions has the length of hits.
func take(hits []Hit, buckets []bucket, now int64, decisions []Decision) {
	refused := false
	for i := range hits {
		decisions[i] = decide(&hits[i], buckets[i], now)
		refused = refused || !hits[i].Shadow && !decisions[i].Allowed
	}
	for i := range hits {
		settle(&hits[i], buckets[i], refused && !hits[i].Shadow, now, &decisions[i])
	}
}

// decide looks whether a hit passes. It spends nothing, but starts the ban that a refusal brings.
func decide(h *Hit, b bucket, now int64) Decision {
	if h.Limit.NeverPasses(h.Cost) {
		return Decision{RetryAfter: Never}
	}
	d := b.look(h.Limit.law(), h.Cost, now)
	if h.Ban == 0 {
		return d
	}
	e, ban := b.held(), h.Ban.Milliseconds()
	switch {
	case e.ban > now:
		e.ban = min(e.ban, now+ban) // it may have been longer, or the clock has stepped back
		d = Decision{BanLeft: e.banned(now), RetryAfter: d.RetryAfter}
	case !d.Allowed && !h.Shadow && h.Cost > 0:
		e.ban = now + ban
	default:
		return d
	}
	d.RetryAfter = max(d.RetryAfter, e.banned(now))
	return d
}

// settle spends what is to be spent once all hits of a take are decided. held says that the request is refused and that the
// hit shares its fate.
func settle(h *Hit, b bucket, held bool, now int64, d *Decision) {
	l := h.Limit.law()
	switch {
	case h.CountDenied && h.Cost > 0 && (held || !d.Allowed):
		if !h.untouched() {
			count(h, b, l, now, d)
		}
	case d.RetryAfter == Never:
	case d.BanLeft > 0 && b.look(l, h.Cost, now).Allowed:
		b.held().keep(l, d.RetryAfter.Milliseconds(), now)
	case !d.Allowed:
		b.refuse(l, d.RetryAfter, now)
	case held:
		*d = b.look(l, 0, now)
	default:
		b.spend(l, h.Cost, now)
	}
}

// count spends a hit of a request that is refused, and sees how long it is until the same hit passes again.
func count(h *Hit, b bucket, l law, now int64, d *Decision) {
	b.count(l, min(h.Cost, h.Limit.Capacity()), now)
	if d.RetryAfter == Never {
		return
	}
	d.ResetAfter, d.RetryAfter = 0, b.look(l, h.Cost, now).RetryAfter
	if !d.Allowed && h.Ban > 0 {
		d.RetryAfter = max(d.RetryAfter, b.held().banned(now))
		b.held().keep(l, b.held().ban-now, now)
	}
}
