package limiter

import (
	"context"
	"sync"
	"time"
)

// DenyCacheOptions say how long a deny cache may wait, and give it its clock.
type DenyCacheOptions struct {
	// Timeout is the whole budget of one take, like that of the store behind. 0 is DefaultRedisTimeout.
	Timeout time.Duration
	// Refused is called for each request that is refused without asking the store about its enforced hits. It may be nil.
	Refused func()
	// Now is a clock that never steps. nil is the monotonic clock.
	Now func() time.Time
}

// maxRemembered is the longest time for which a refusal is believed, so that what changes in the store by another hand than a
// hit's is felt within it.
const maxRemembered = time.Second

// DenyCache refuses what the store behind it has refused a moment ago, without asking it: a client that goes on when its limit
// is exhausted costs the store next to nothing. It changes no decision: each refusal is believed for as long as its wait, at
// most a second, counted from when the take was sent. It forgets by itself, and needs 26 MB at most.
//
// Hits that are spent in a refused request too, shadow hits and those with CountDenied, are still taken from the store, and
// the whole request is when one of its hits might start a ban.
type DenyCache struct {
	next    Store
	timeout time.Duration
	refused func()
	now     func() time.Time
	start   time.Time

	mu    sync.Mutex
	known refusals
}

// NewDenyCache returns an empty cache over that store.
func NewDenyCache(next Store, o DenyCacheOptions) *DenyCache {
	c := &DenyCache{next: next, timeout: o.Timeout, refused: o.Refused, now: o.Now}
	if c.timeout <= 0 {
		c.timeout = DefaultRedisTimeout
	}
	if c.refused == nil {
		c.refused = func() {}
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.start = c.now()
	return c
}

// Reset forgets all refusals, so that a changed configuration acts at once.
func (c *DenyCache) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = refusals{}
}

// elapsed is the cache's clock.
func (c *DenyCache) elapsed() time.Duration { return c.now().Sub(c.start) }

// Take implements Store. Of a request that is refused from memory the enforced hits of which nothing is remembered are
// Skipped, and so are those that are taken all the same if the store fails. A request whose remembered refusal has run out
// while another asks about it waits for that answer, for half the budget: then it asks for itself.
func (c *DenyCache) Take(ctx context.Context, hits []Hit) ([]Decision, error) {
	var late *time.Timer
	for {
		decisions, lead, changed := c.look(hits)
		switch {
		case decisions != nil:
			c.refused()
			c.takeUnheld(ctx, hits, decisions)
			return decisions, nil
		case changed == nil:
			return c.ask(ctx, hits, lead)
		}
		if late == nil {
			now := time.Now()
			left := budget(ctx, now, c.timeout)
			late = time.NewTimer(left / 2)
			defer late.Stop()
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, now.Add(left)) // what comes after the wait has the same budget
			defer cancel()
		}
		select {
		case <-changed:
		case <-late.C:
			return c.ask(ctx, hits, nil)
		}
	}
}

// look finds what is to be done with a request. It is refused, with these decisions; or it must wait until changed is closed,
// and look again; or the store is to be asked and, if there is a lead, told to those who wait for it.
//
// The lead is the refusal with the longest wait that is remembered of the request, be it that it is no longer believed: the
// wait that the client is told is true only if that one is.
func (c *DenyCache) look(hits []Hit) (decisions []Decision, lead *remembered, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	c.known.age(now)
	var space [8]*remembered
	found, never, mayBan := space[:0], false, false
	for i := range hits {
		r := c.known.find(&hits[i])
		found = append(found, r)
		never = never || hits[i].hopeless()
		mayBan = mayBan || !r.believed(now) && hits[i].bans()
		if r != nil && (lead == nil || r.ends > lead.ends) {
			lead = r
		}
	}
	switch {
	case !mayBan && (never || lead.believed(now)):
		return refuse(hits, found, now), nil, nil
	case lead == nil || lead.believed(now):
		return nil, nil, nil
	case lead.asking < lead.width:
		lead.asking++
		return nil, lead, nil
	}
	return nil, nil, lead.change()
}

// held reports whether the hit is not spent if its request is refused. Of others nothing is remembered.
func (h *Hit) held() bool { return !h.Shadow && !h.CountDenied }

// hopeless reports whether the hit refuses its request whatever the store holds.
func (h *Hit) hopeless() bool { return h.held() && h.Limit.NeverPasses(h.Cost) }

// bans reports whether a refusal of the hit starts a ban, if there is none.
func (h *Hit) bans() bool {
	return h.Ban > 0 && h.Cost > 0 && !h.Shadow && !h.Limit.NeverPasses(h.Cost)
}

// refuse decides the hits of which something is known, and skips the others.
func refuse(hits []Hit, found []*remembered, now time.Duration) []Decision {
	decisions := make([]Decision, len(hits))
	for i, r := range found {
		switch {
		case hits[i].hopeless():
			decisions[i].RetryAfter = Never
		case r.believed(now):
			decisions[i] = Decision{RetryAfter: r.ends - now, BanLeft: max(0, r.banEnds-now)}
		default:
			decisions[i].Skipped = true
		}
	}
	return decisions
}

// takeUnheld takes the hits of a refused request that are spent all the same. If the store fails they stay Skipped.
func (c *DenyCache) takeUnheld(ctx context.Context, hits []Hit, decisions []Decision) {
	var unheld []Hit
	var places []int
	var counted *Hit
	for i := range hits {
		h := &hits[i]
		if !h.held() {
			unheld, places = append(unheld, *h), append(places, i)
		}
		if !h.held() && !h.Shadow {
			counted = h
		}
	}
	if unheld == nil {
		return
	}
	if counted != nil { // as what it is, a part of a request that is refused
		unheld = append(unheld, refuser(counted))
	}
	taken, err := c.next.Take(ctx, unheld)
	if err != nil {
		return
	}
	for i, place := range places {
		decisions[place] = taken[i]
	}
}

// refuser refuses the request that it is a part of, and touches no bucket. It has its name where the other hit's is.
func refuser(other *Hit) Hit {
	h := Hit{Key: other.Key, Tag: other.Tag, Limit: Limit{Algorithm: FixedWindow, Window: MinWindow}}
	h.Key[0] ^= 0xff // no two hits share a key
	return h
}

// ask takes the hits from the store and remembers what it says, and tells those who wait for the lead.
func (c *DenyCache) ask(ctx context.Context, hits []Hit, lead *remembered) ([]Decision, error) {
	sent := c.elapsed()
	decisions, err := c.next.Take(ctx, hits)
	came := c.elapsed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.age(came)
	if err == nil {
		for i := range hits {
			if h := &hits[i]; h.held() {
				c.known.learn(h, decisions[i], sent, came, lead)
			}
		}
	}
	if lead != nil {
		if err != nil {
			c.known.forget(lead.key, func(r *remembered) bool { return r == lead })
		}
		lead.answered()
	}
	return decisions, err
}
