package limiter

// groups is how many groups share a full quota.
const groups = 32

// groupedLog keeps the units that passed in groups of up to ⌈quota/32⌉ that leave the window together, when the newest of
// the group does: never above the quota in any window, in little memory. Ticks are kept modulo 2^32, as in slidingLog.
type groupedLog struct {
	lease
	groups []group // oldest first; the oldest may have left the window
}

type group struct {
	tick  uint32 // of the newest unit
	units uint32
}

// at reads the log at now: the tick to count from, how far the clock is behind the newest group, the groups in the window
// and their units.
func (s *groupedLog) at(l law, now int64) (t uint32, skew int64, live []group, total int64) {
	var last uint32
	if len(s.groups) > 0 {
		last = s.groups[len(s.groups)-1].tick
	}
	t, skew, fresh := s.clamp(l, last, now)
	if fresh {
		return t, 0, nil, 0
	}
	live = s.groups
	for len(live) > 0 && int64(t-live[0].tick) >= l.window {
		live = live[1:]
	}
	for _, g := range live {
		total += int64(g.units)
	}
	return t, skew, live, total
}

func (s *groupedLog) look(l law, cost uint32, now int64) Decision {
	t, skew, live, total := s.at(l, now)
	if short := total + need(cost) - l.quota; short > 0 {
		i := 0
		for short -= int64(live[0].units); short > 0; short -= int64(live[i].units) {
			i++
		}
		return l.refused(l.window - int64(t-live[i].tick) + skew)
	}
	remaining := l.quota - total - int64(cost)
	if remaining == l.quota {
		return l.allowed(remaining, 0)
	}
	oldest := t // of the hit itself
	if len(live) > 1 || len(live) == 1 && (cost == 0 || !l.joins(live, cost, t)) {
		oldest = live[0].tick
	}
	return l.allowed(remaining, l.window-int64(t-oldest)+skew)
}

// joins reports whether a hit at t belongs to the newest group.
func (l law) joins(live []group, cost, t uint32) bool {
	if len(live) == 0 {
		return false
	}
	newest := live[len(live)-1]
	return newest.tick == t || int64(newest.units)+int64(cost) <= divUp(l.quota, groups)
}

func (s *groupedLog) spend(l law, cost uint32, now int64) {
	if cost > 0 {
		t, skew, live, _ := s.at(l, now)
		s.add(l, t, skew, live, cost, now)
	}
}

func (s *groupedLog) count(l law, cost uint32, now int64) {
	t, skew, live, total := s.at(l, now)
	for short := total + int64(cost) - l.quota; short > 0; {
		units := min(short, int64(live[0].units))
		live[0].units -= uint32(units)
		short -= units
		if live[0].units == 0 {
			live = live[1:]
		}
	}
	s.add(l, t, skew, live, cost, now)
}

// add keeps these groups and the units of a hit at tick t.
func (s *groupedLog) add(l law, t uint32, skew int64, live []group, cost uint32, now int64) {
	joins := l.joins(live, cost, t)
	s.groups = append(s.groups[:0], live...)
	if joins {
		newest := &s.groups[len(s.groups)-1]
		newest.tick, newest.units = t, newest.units+cost
	} else {
		s.groups = append(s.groups, group{t, cost})
	}
	s.keep(l, (l.window+skew)*l.tick, now)
}

func (s *groupedLog) full(l law, now int64) int64 {
	t, skew, live, _ := s.at(l, now)
	if len(live) == 0 {
		return now
	}
	return now + (l.window-int64(t-live[len(live)-1].tick)+skew)*l.tick
}
