package limiter

import (
	"math"
	"time"
)

// slidingCounter counts the units of the present window, and those of the one before it in proportion to how much of it
// the sliding window still covers.
type slidingCounter struct {
	lease
	cur    uint32 // units in the window of that index
	prev   uint32 // units in the window before it
	index  uint32 // modulo 2^18
	window uint32 // the windows' length in ticks
}

// counts is what a counter holds at one instant.
type counts struct {
	position
	cur, prev int64
	carried   bool // counted in windows of another length
}

// at reads the counter at now. Units that were counted in windows of another length are carried over into the present
// window as the estimate of that moment.
func (s *slidingCounter) at(l law, now int64) counts {
	t := now / l.tick
	fresh := counts{position: positionAt(t, l.window)}
	if s.window == 0 {
		return fresh
	}
	w := int64(s.window)
	p, age := positionAt(t, w).since(s.index, w)
	c := counts{position: p, cur: int64(s.cur), prev: int64(s.prev)}
	switch age {
	case 1:
		c.cur, c.prev = 0, c.cur
	case 2:
		return fresh
	}
	if w == l.window {
		return c
	}
	estimate := c.cur + divUp(c.prev*(w-c.elapsed), w)
	return counts{position: fresh.position, cur: min(estimate, math.MaxUint32), carried: true}
}

// free is how many more units could pass now, times the window; below 0 if the counts are above the quota.
func (c counts) free(l law) int64 {
	return (l.quota-c.cur)*l.window - c.prev*(l.window-c.elapsed)
}

// wait is the ticks until so many units pass, which must be more than pass now: this window's rest less the time in which
// the previous count need not decay, or one window more and what is then the previous count.
func (c counts) wait(l law, units int64) int64 {
	room := l.quota - units
	if c.cur <= room {
		return c.rest(l.window) - (room-c.cur)*l.window/c.prev
	}
	return c.rest(l.window) + l.window - room*l.window/c.cur
}

func (s *slidingCounter) look(l law, cost uint32, now int64) Decision {
	c := s.at(l, now)
	if c.free(l) < need(cost)*l.window {
		return l.refused(c.wait(l, need(cost)))
	}
	c.cur += int64(cost)
	remaining := c.free(l) / l.window
	if remaining == l.quota {
		return l.allowed(remaining, 0)
	}
	return l.allowed(remaining, c.wait(l, remaining+1))
}

func (s *slidingCounter) spend(l law, cost uint32, now int64) {
	if cost > 0 {
		s.add(l, s.at(l, now), int64(cost), now)
	}
}

func (s *slidingCounter) count(l law, cost uint32, now int64) {
	c := s.at(l, now)
	if units := min(int64(cost), max(0, c.free(l))/l.window); units > 0 || c.carried {
		s.add(l, c, units, now)
	}
	s.lease.refuse(l, s.look(l, cost, now).RetryAfter, now)
}

func (s *slidingCounter) add(l law, c counts, units, now int64) {
	s.cur, s.prev, s.index, s.window = uint32(c.cur+units), uint32(c.prev), c.index, uint32(l.window)
	s.keep(l, (2*l.window+c.skew)*l.tick, now)
}

// refuse keeps units that were carried over where they are now: carried over again later, they would count in a later
// window, and the wait would have been too short.
func (s *slidingCounter) refuse(l law, wait time.Duration, now int64) {
	if c := s.at(l, now); c.carried {
		s.add(l, c, 0, now)
	}
	s.lease.refuse(l, wait, now)
}

func (s *slidingCounter) full(l law, now int64) int64 {
	c := s.at(l, now)
	switch {
	case c.cur > 0:
		return now + (c.rest(l.window)+l.window)*l.tick
	case c.prev > 0:
		return now + c.rest(l.window)*l.tick
	}
	return now
}
