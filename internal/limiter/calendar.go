package limiter

import "time"

// Period is what one window of a calendar is called.
type Period uint8

// The periods. The zero value is no calendar.
const (
	Day   Period = iota + 1
	Week         // from Monday
	Month        // from the first
	Year         // from the first of January
)

// Calendar has windows that begin and end at midnight in one time zone. The zero value has none.
type Calendar struct {
	Period Period
	Zone   *time.Location // nil is UTC
}

const day24 = 24 * time.Hour

// Around returns the beginning of the window that holds the instant, and its end, which is the beginning of the next. A day
// has 23 or 25 hours where the clocks change; one whose midnight does not exist begins when the clocks have changed.
func (c Calendar) Around(at time.Time) (begin, end time.Time) {
	at = at.In(c.zone())
	year, month, day := at.Date()
	switch c.Period {
	case Week:
		day -= (int(at.Weekday()) + 6) % 7 // days since Monday
		return c.midnight(year, month, day), c.midnight(year, month, day+7)
	case Month:
		return c.midnight(year, month, 1), c.midnight(year, month+1, 1)
	case Year:
		return c.midnight(year, time.January, 1), c.midnight(year+1, time.January, 1)
	}
	return c.midnight(year, month, day), c.midnight(year, month, day+1)
}

// Longest is the length of the longest window that the calendar can have, and the Window of its limits.
func (c Calendar) Longest() time.Duration {
	switch c.Period {
	case Week:
		return 8 * day24
	case Month:
		return 32 * day24
	case Year:
		return MaxWindow + day24
	}
	return 2 * day24
}

func (c Calendar) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// midnight is the first instant of a day: the earlier of two midnights, and the change of the clocks where it skips the only
// one. time.Date picks any of these.
func (c Calendar) midnight(year int, month time.Month, day int) time.Time {
	utc := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	var first time.Time
	for _, near := range []time.Duration{-day24, day24} {
		_, offset := utc.Add(near).In(c.zone()).Zone()
		at := utc.Add(-time.Duration(offset) * time.Second).In(c.zone())
		if dayOf(at).Before(utc) { // with this offset the day has not begun
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// dayOf is the date that the clocks show, as a time in UTC.
func dayOf(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
