package limiter

import "time"

const (
	// generation is how long refusals are kept at least, of which each is believed for half as long at most: so they are still
	// there when they run out, for those who then wait for each other.
	generation = 2 * maxRemembered
	// maxRefusals bounds what is remembered of one generation. What does not fit in is asked of the store each time.
	maxRefusals = 1 << 16
	// maxVariants bounds what is remembered of one bucket: a client may choose the cost of its requests.
	maxVariants = 8
	// maxAsking is how many may ask at once about a refusal that has run out; then it is forgotten.
	maxAsking = 32
)

// refusals are what is remembered, by bucket. Times are of the cache's clock. The zero value is empty, and must be aged before
// anything is remembered.
type refusals struct {
	recent, older map[Key]*remembered // each the first of a list
	count         int                 // in recent
	turns         time.Duration       // when recent becomes older
}

// remembered is what there is of hits that have the bucket, the limit, the cost and the ban in common.
type remembered struct {
	key   Key
	limit Limit
	cost  uint32
	ban   time.Duration

	until   time.Duration // until when it is believed
	ends    time.Duration // until when a client has to wait, seen from when the reply came: never too early
	banEnds time.Duration // when the bucket's ban ends at the soonest; 0 if there is none

	// When it has run out, width takes may ask the store at the same time: one, and then as many as may pass, and one more.
	asking, width int
	changed       chan struct{} // closed when one of them has its answer; nil if nobody waits for that

	next *remembered // of the same bucket
}

// believed reports whether the hit is refused without asking; nothing is if r is nil.
func (r *remembered) believed(now time.Duration) bool { return r != nil && now < r.until }

func (r *remembered) of(h *Hit) bool { return r.limit == h.Limit && r.cost == h.Cost && r.ban == h.Ban }

// change returns what is closed when there is news.
func (r *remembered) change() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// answered ends one of those that ask.
func (r *remembered) answered() {
	r.asking--
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// age lets go of what is old.
func (s *refusals) age(now time.Duration) {
	if now < s.turns {
		return
	}
	s.older = s.recent
	if now >= s.turns+generation {
		s.older = nil
	}
	s.recent, s.count, s.turns = make(map[Key]*remembered), 0, now+generation
}

// find returns what is remembered of such a hit; nil if nothing is.
func (s *refusals) find(h *Hit) *remembered {
	if !h.held() {
		return nil
	}
	for _, list := range [...]*remembered{s.recent[h.Key], s.older[h.Key]} {
		for r := list; r != nil; r = r.next {
			if r.of(h) {
				return r
			}
		}
	}
	return nil
}

// learn takes in what the store said of a hit that was sent at one time and answered at another. If it is allowed, as many of
// those who wait for the lead may ask at once as may pass, and one more. Of a bucket that was spent from under other numbers, as an override has them,
// nothing more is known: it may have been refilled faster.
func (s *refusals) learn(h *Hit, d Decision, sent, came time.Duration, lead *remembered) {
	if d.Allowed {
		s.forget(h.Key, func(r *remembered) bool {
			if r == lead && r.of(h) {
				r.width = 1 + int(min(d.Remaining/max(h.Cost, 1), maxAsking))
				return r.width > maxAsking
			}
			return r.limit != h.Limit || r.of(h)
		})
		return
	}
	fresh := remembered{
		key: h.Key, limit: h.Limit, cost: h.Cost, ban: h.Ban,
		ends: came + d.RetryAfter, banEnds: banEnds(h, d, sent), width: 1,
	}
	// The bucket counts from the beginning of its present tick.
	fresh.until = sent + min(d.RetryAfter+time.Millisecond-h.Limit.tick(), maxRemembered)
	if fresh.banEnds > 0 {
		fresh.until = min(fresh.until, fresh.banEnds) // the refusal after it starts the next one
	}
	s.forget(h.Key, func(r *remembered) bool { return r.of(h) })
	if d.RetryAfter > 0 && s.count < maxRefusals { // neither Skipped nor for ever
		s.add(&fresh)
	}
}

// banEnds is when the ban of a bucket that has refused a hit ends at the soonest; 0 if there is none.
func banEnds(h *Hit, d Decision, sent time.Duration) time.Duration {
	switch {
	case d.BanLeft > 0:
		return sent + d.BanLeft
	case h.bans():
		return sent + h.Ban
	}
	return 0
}

func (s *refusals) add(r *remembered) {
	r.next = s.recent[r.key]
	s.recent[r.key] = r
	s.count++
	n := 1
	for last := r; last.next != nil; last = last.next {
		if n++; n > maxVariants {
			last.next = nil
			s.count--
			break
		}
	}
}

// forget drops those refusals of a bucket.
func (s *refusals) forget(k Key, gone func(*remembered) bool) {
	s.count -= drop(s.recent, k, gone)
	drop(s.older, k, gone)
}

func drop(from map[Key]*remembered, k Key, gone func(*remembered) bool) (n int) {
	first := from[k]
	if first == nil {
		return 0
	}
	for at := &first; *at != nil; {
		if gone(*at) {
			*at = (*at).next
			n++
		} else {
			at = &(*at).next
		}
	}
	if first == nil {
		delete(from, k)
	} else {
		from[k] = first
	}
	return n
}
