package limiter

import (
	"testing"
	"time"

	_ "time/tzdata" // the zones below
)

func TestCalendarWindowsFollowTheClocksOfTheirZone(t *testing.T) { // D114, D115
	for _, c := range []struct {
		period     Period
		zone       string
		at         string // an instant in the window, UTC
		begin, end string // of the window, UTC
		length     time.Duration
		what       string
	}{
		{Day, "UTC", "2026-02-10T12:00:00Z", "2026-02-10T00:00:00Z", "2026-02-11T00:00:00Z", 24 * time.Hour, "a day"},
		{Day, "America/New_York", "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", 23 * time.Hour, "clocks go forward"},
		{Day, "America/New_York", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", 25 * time.Hour, "clocks go back"},
		{Day, "America/New_York", "2026-11-01T04:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", 25 * time.Hour, "the first instant"},
		{Day, "America/New_York", "2026-11-01T03:59:59Z", "2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z", 24 * time.Hour, "the last second before"},
		{Day, "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z", 23 * time.Hour, "midnight is skipped"},
		{Day, "America/Havana", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", 25 * time.Hour, "midnight comes twice"},
		{Day, "America/Havana", "2026-11-01T05:10:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", 25 * time.Hour, "after the second midnight"},
		{Day, "Asia/Kathmandu", "2026-05-05T18:14:59Z", "2026-05-04T18:15:00Z", "2026-05-05T18:15:00Z", 24 * time.Hour, "an offset of quarter hours"},
		{Day, "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", 24 * time.Hour, "before a day that does not exist"},
		{Day, "Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z", 24 * time.Hour, "after a day that does not exist"},
		{Week, "UTC", "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z", 7 * 24 * time.Hour, "a Monday"},
		{Week, "UTC", "2026-12-06T23:59:59Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z", 7 * 24 * time.Hour, "a Sunday"},
		{Week, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z", 7*24*time.Hour - time.Hour, "a week with a change"},
		{Month, "UTC", "2026-02-28T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", 28 * 24 * time.Hour, "February"},
		{Month, "UTC", "2028-02-29T00:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z", 29 * 24 * time.Hour, "a leap year's"},
		{Month, "UTC", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", 31 * 24 * time.Hour, "December"},
		{Month, "Europe/Berlin", "2026-10-31T22:59:59Z", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z", 31*24*time.Hour + time.Hour, "a month with a change"},
		{Year, "UTC", "2028-07-01T00:00:00Z", "2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z", 366 * 24 * time.Hour, "a leap year"},
		{Year, "Pacific/Auckland", "2026-12-31T11:00:00Z", "2026-12-31T11:00:00Z", "2027-12-31T11:00:00Z", 365 * 24 * time.Hour, "a year elsewhere"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := time.Parse(time.RFC3339, c.at)
		calendar := Calendar{c.period, zone}
		begin, end := calendar.Around(at)
		if got, want := [2]string{begin.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339)}, [2]string{c.begin, c.end}; got != want {
			t.Errorf("%s, %s: %v, want %v", c.what, c.zone, got, want)
		}
		if end.Sub(begin) != c.length || c.length > calendar.Longest() {
			t.Errorf("%s, %s: %v long, want %v", c.what, c.zone, end.Sub(begin), c.length)
		}
	}
}

// TestCalendarWindowsFollowEachOtherWithoutAGap walks through two years in steps of an odd length.
func TestCalendarWindowsFollowEachOtherWithoutAGap(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Antarctica/Troll", "Africa/Casablanca"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, period := range []Period{Day, Week, Month, Year} {
			c := Calendar{period, zone}
			begin, end := c.Around(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))
			for at := begin; at.Year() < 2028; at = at.Add(17*time.Minute + 13*time.Second) {
				b, e := c.Around(at)
				if at.Before(end) && !(b.Equal(begin) && e.Equal(end)) || !at.Before(end) && !b.Equal(end) || at.Before(b) || !at.Before(e) {
					t.Fatalf("%s, period %d: at %v the window is %v to %v, the one before ends at %v", name, period, at, b, e, end)
				}
				begin, end = b, e
			}
		}
	}
}
