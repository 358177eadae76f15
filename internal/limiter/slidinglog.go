package limiter

import "sort"

// slidingLog keeps the tick of each unit that passed, oldest first, in a ring: exact in every window. Ticks are kept
// modulo 2^32; those that matter lie within one window, 2^30 ticks at most, so that their differences are exact.
type slidingLog struct {
	lease
	last uint32 // the newest tick
	n    uint32 // units in the ring; the oldest of them may have left the window
	tail uint32 // place of the oldest
	ring []uint32
}

// at reads the log at now: the tick to count from, how far the clock is behind the newest unit, and how many of the oldest
// units have left the window.
func (s *slidingLog) at(l law, now int64) (t uint32, skew int64, gone uint32) {
	t, skew, fresh := s.clamp(l, s.last, now)
	if fresh {
		return t, 0, s.n
	}
	return t, skew, s.gone(l.window, t)
}

// gone is how many of the oldest units have left the window at t.
func (s *slidingLog) gone(window int64, t uint32) uint32 {
	if s.n == 0 || s.age(0, t) < window { // most often: what had left was dropped the last time
		return 0
	}
	return uint32(sort.Search(int(s.n), func(i int) bool { return s.age(uint32(i), t) < window }))
}

// age is how many ticks before t the i-th oldest unit passed, counted from 0.
func (s *slidingLog) age(i, t uint32) int64 { return int64(t - s.ring[s.place(i)]) }

// place is where the i-th oldest unit is, or the next one comes: i is at most the size of the ring.
func (s *slidingLog) place(i uint32) uint32 {
	at := s.tail + i
	if size := uint32(len(s.ring)); at >= size {
		at -= size // cheaper than a division
	}
	return at
}

func (s *slidingLog) look(l law, cost uint32, now int64) Decision {
	t, skew, gone := s.at(l, now)
	n := int64(s.n - gone)
	if short := n + need(cost) - l.quota; short > 0 {
		return l.refused(l.window - s.age(gone+uint32(short-1), t) + skew)
	}
	remaining := l.quota - n - int64(cost)
	switch {
	case n > 0:
		return l.allowed(remaining, l.window-s.age(gone, t)+skew)
	case cost > 0:
		return l.allowed(remaining, l.window)
	}
	return l.allowed(remaining, 0)
}

func (s *slidingLog) spend(l law, cost uint32, now int64) {
	if cost == 0 {
		return
	}
	t, skew, gone := s.at(l, now)
	s.drop(gone)
	s.fit(s.n+cost, l.quota)
	for range cost {
		s.ring[s.place(s.n)] = t
		s.n++
	}
	s.last = t
	s.keep(l, (l.window+skew)*l.tick, now)
}

func (s *slidingLog) count(l law, cost uint32, now int64) {
	if _, _, gone := s.at(l, now); int64(s.n-gone)+int64(cost) > l.quota {
		s.drop(uint32(int64(s.n) + int64(cost) - l.quota)) // what has left the window goes first
	}
	s.spend(l, cost, now)
}

// drop takes the oldest units out of the ring.
func (s *slidingLog) drop(n uint32) {
	if n == s.n {
		s.tail, s.n = 0, 0
		return
	}
	s.tail, s.n = s.place(n), s.n-n
}

// minRing is the size of the smallest ring, unless the quota is smaller.
const minRing = 8

// fit makes the ring as large as n units need: it doubles until they fit, but not beyond the quota, and shrinks once three
// quarters are empty.
func (s *slidingLog) fit(n uint32, quota int64) {
	size := uint32(len(s.ring))
	if n <= size && (size <= minRing || n > size/4) {
		return
	}
	size = minRing
	for size < n {
		size *= 2
	}
	ring := make([]uint32, min(size, max(n, uint32(quota))))
	for i := range s.n {
		ring[i] = s.ring[s.place(i)]
	}
	s.ring, s.tail = ring, 0
}

func (s *slidingLog) full(l law, now int64) int64 {
	t, skew, gone := s.at(l, now)
	if gone == s.n {
		return now
	}
	return now + (l.window-int64(t-s.last)+skew)*l.tick
}
