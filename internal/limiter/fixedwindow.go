package limiter

import "time"

// fixedWindow counts the units of one window.
type fixedWindow struct {
	lease
	count  uint32 // units in the window of that index
	index  uint32
	window uint32 // the window's length in ticks
}

// at reads the count at now. Units that were counted in a window of another length that has not ended are carried over into
// the present window.
func (s *fixedWindow) at(l law, now int64) counts {
	t := now / l.tick
	fresh := counts{position: positionAt(t, l.window), fresh: true}
	if s.missing(now) {
		return fresh
	}
	w := int64(s.window)
	p, age := positionAt(t, w).since(s.index, w)
	switch {
	case age > 0:
		return fresh
	case w == l.window:
		return counts{position: p, cur: int64(s.count)}
	}
	return counts{position: fresh.position, cur: int64(s.count), carried: true}
}

func (s *fixedWindow) look(l law, cost uint32, now int64) Decision {
	c := s.at(l, now)
	if c.cur+need(cost) > l.quota {
		return l.refused(c.rest(l.window))
	}
	c.cur += int64(cost)
	if c.cur == 0 {
		return l.allowed(l.quota, 0)
	}
	return l.allowed(l.quota-c.cur, c.rest(l.window))
}

func (s *fixedWindow) spend(l law, cost uint32, now int64) {
	if cost > 0 {
		c := s.at(l, now)
		c.cur += int64(cost)
		s.keep(l, c, now)
	}
}

func (s *fixedWindow) keep(l law, c counts, now int64) {
	if c.fresh || c.carried {
		s.deadline = 0
	}
	s.count, s.index, s.window = uint32(c.cur), c.index, uint32(l.window)
	s.renew(l, now)
}

// refuse keeps units that were carried over where they are now: carried over again later, they would count in a later
// window, and the wait would have been too short.
func (s *fixedWindow) refuse(l law, wait time.Duration, now int64) {
	if c := s.at(l, now); c.carried {
		s.keep(l, c, now)
	}
	s.lease.refuse(l, wait, now)
}

func (s *fixedWindow) full(l law, now int64) int64 {
	if c := s.at(l, now); c.cur > 0 {
		return now + c.rest(l.window)*l.tick
	}
	return now
}
