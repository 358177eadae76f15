package limiter

// tokenBucket keeps the units that are missing from a full bucket, times the window: quota of these leave in each tick,
// so that every number is whole. This is the law of GCRA, exact.
type tokenBucket struct {
	lease
	window  uint32 // the window in ticks by which missing is multiplied
	missing int64  // units missing at tick last, times window
	last    int64  // the tick of the newest unit
}

// at reads the bucket at now: the missing units times the window, the tick to count from and how far the clock is behind
// it. Nothing is missing if the bucket does not exist, or the clock has stepped back by more than a window.
func (s *tokenBucket) at(l law, now int64) (missing, t, skew int64) {
	t = now / l.tick
	if s.window == 0 || s.last-t > l.window {
		return 0, t, 0
	}
	if t < s.last {
		t, skew = s.last, s.last-t
	}
	missing = s.missing
	if w := int64(s.window); w != l.window {
		missing = missing/w*l.window + divUp(missing%w*l.window, w)
	}
	// Nobody waits for more than a full bucket, also after the burst was lowered.
	missing = min(missing, l.burst*l.window)
	if ticks := t - s.last; ticks < missing/l.quota+1 {
		return max(missing-ticks*l.quota, 0), t, skew
	}
	return 0, t, skew
}

func (s *tokenBucket) look(l law, cost uint32, now int64) Decision {
	missing, _, skew := s.at(l, now)
	capacity := l.burst * l.window
	if short := missing + need(cost)*l.window - capacity; short > 0 {
		return l.refused(divUp(short, l.quota) + skew)
	}
	missing += int64(cost) * l.window
	remaining := (capacity - missing) / l.window
	if missing == 0 {
		return l.allowed(remaining, 0)
	}
	return l.allowed(remaining, divUp(missing+(remaining+1)*l.window-capacity, l.quota)+skew)
}

func (s *tokenBucket) spend(l law, cost uint32, now int64) {
	if cost > 0 {
		s.count(l, cost, now)
	}
}

func (s *tokenBucket) count(l law, cost uint32, now int64) {
	missing, t, skew := s.at(l, now)
	missing = min(missing+int64(cost)*l.window, l.burst*l.window)
	s.missing, s.last, s.window = missing, t, uint32(l.window)
	s.keep(l, (l.life+skew)*l.tick, now)
}

func (s *tokenBucket) full(l law, now int64) int64 {
	missing, _, skew := s.at(l, now)
	if missing == 0 {
		return now
	}
	return now + (divUp(missing, l.quota)+skew)*l.tick
}
