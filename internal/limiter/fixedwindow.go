package limiter

import "time"

// fixedWindow counts the units of one window.
type fixedWindow struct {
	lease
	units  uint32 // in the window of that index
	index  uint32 // modulo 2^18
	window uint32 // the window's length in ticks
}

// at reads the count at now. Units that were counted in a window of another length that has not ended are carried over into
// the present window.
func (s *fixedWindow) at(l law, now int64) counts {
	t := now / l.tick
	fresh := counts{position: positionAt(t, l.window)}
	if s.window == 0 {
		return fresh
	}
	w := int64(s.window)
	p, age := positionAt(t, w).since(s.index, w)
	switch {
	case age > 0:
		return fresh
	case w == l.window:
		return counts{position: p, cur: int64(s.units)}
	}
	return counts{position: fresh.position, cur: int64(s.units), carried: true}
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
		s.add(l, s.at(l, now), int64(cost), now)
	}
}

func (s *fixedWindow) count(l law, cost uint32, now int64) {
	c := s.at(l, now)
	if units := min(int64(cost), max(0, l.quota-c.cur)); units > 0 || c.carried {
		s.add(l, c, units, now)
	}
	s.lease.refuse(l, s.look(l, cost, now).RetryAfter, now)
}

func (s *fixedWindow) add(l law, c counts, units, now int64) {
	s.units, s.index, s.window = uint32(c.cur+units), c.index, uint32(l.window)
	s.keep(l, max(l.window, c.rest(l.window))*l.tick, now)
}

// refuse keeps units that were carried over where they are now: carried over again later, they would count in a later
// window, and the wait would have been too short.
func (s *fixedWindow) refuse(l law, wait time.Duration, now int64) {
	if c := s.at(l, now); c.carried {
		s.add(l, c, 0, now)
	}
	s.lease.refuse(l, wait, now)
}

func (s *fixedWindow) full(l law, now int64) int64 {
	if c := s.at(l, now); c.cur > 0 {
		return now + c.rest(l.window)*l.tick
	}
	return now
}
