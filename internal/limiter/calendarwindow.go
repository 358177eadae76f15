package limiter

import "time"

// calendarWindow counts the units of one day, week, month or year. Times are Unix seconds.
type calendarWindow struct {
	lease
	units      uint32 // in the window below
	begin, end int64  // of the window; 0 if there is none
}

// span is a window of a calendar and what is counted in it.
type span struct {
	begin, end int64
	units      int64
	carried    bool // counted in another calendar's window
}

// at reads the count at now. Units of another calendar's window that has not ended are carried over into the present window,
// or into the next one if they were counted there.
func (s *calendarWindow) at(l law, now int64) span {
	begin, end := l.calendar.Around(time.UnixMilli(now))
	present := span{begin: begin.Unix(), end: end.Unix()}
	switch second := now / 1000; {
	case second >= s.end || second < s.begin && s.begin != present.end:
		return present // its time is over, or the clock has stepped back by more than a window
	case second < s.begin: // the clock has stepped back behind the counted window
		begin, end = l.calendar.Around(end)
		present = span{begin: begin.Unix(), end: end.Unix()}
	}
	present.carried = s.begin != present.begin || s.end != present.end
	present.units = int64(s.units)
	return present
}

// until is the time until the window ends.
func (s span) until(now int64) time.Duration { return time.Duration(s.end*1000-now) * time.Millisecond }

func (s *calendarWindow) look(l law, cost uint32, now int64) Decision {
	w := s.at(l, now)
	if w.units+need(cost) > l.quota {
		return Decision{RetryAfter: w.until(now)}
	}
	d := Decision{Allowed: true, Remaining: uint32(l.quota - w.units - int64(cost))}
	if int64(d.Remaining) < l.quota {
		d.ResetAfter = w.until(now)
	}
	return d
}

func (s *calendarWindow) spend(l law, cost uint32, now int64) {
	if cost > 0 {
		s.add(l, s.at(l, now), int64(cost), now)
	}
}

func (s *calendarWindow) count(l law, cost uint32, now int64) {
	w := s.at(l, now)
	s.add(l, w, min(int64(cost), max(0, l.quota-w.units)), now)
}

func (s *calendarWindow) add(l law, w span, units, now int64) {
	s.units, s.begin, s.end = uint32(w.units+units), w.begin, w.end
	s.keep(l, w.until(now).Milliseconds(), now)
}

// refuse keeps units that were carried over where they are now: carried over again later, they would count in a later
// window, and the wait would have been too short.
func (s *calendarWindow) refuse(l law, wait time.Duration, now int64) {
	if w := s.at(l, now); w.carried {
		s.add(l, w, 0, now)
	}
	s.lease.refuse(l, wait, now)
}

func (s *calendarWindow) full(l law, now int64) int64 {
	if w := s.at(l, now); w.units > 0 {
		return w.end * 1000
	}
	return now
}
