package config

import (
	"strings"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// D114, D115
func TestACalendarWindowIsAnAlgorithmOfItsOwn(t *testing.T) {
	tests := map[string]limiter.Calendar{
		"limit: 7/day, timezone: Europe/Berlin":   {Period: limiter.Day},
		"limit: 7/week, timezone: Europe/Berlin":  {Period: limiter.Week},
		"timezone: Europe/Berlin, limit: 7/month": {Period: limiter.Month},
		"limit: 7/year, timezone: Europe/Berlin":  {Period: limiter.Year},
	}
	for text, calendar := range tests {
		text = strings.TrimSuffix(text, "")
		r := parse(t, "rules: [{name: a, key: [], algorithm: fixed_window, "+text+", overrides: [{match: {}, cost: 2}]}]").Rules[0]
		for _, l := range []limiter.Limit{r.Limit, r.Overrides[0].Limit} {
			calendar.Zone = l.Calendar.Zone
			want := limiter.Limit{
				Algorithm: limiter.CalendarWindow, Quota: 7, Window: calendar.Longest(), Calendar: calendar, Tick: time.Second,
			}
			if l != want || l.Calendar.Zone.String() != "Europe/Berlin" {
				t.Errorf("%s is %+v, want %+v in Europe/Berlin", text, l, want)
			}
		}
	}
}

// D114
func TestWithoutATimezoneACalendarIsThatOfUTC(t *testing.T) {
	l := parse(t, "rules: [{name: a, key: [], limit: 7/day, algorithm: fixed_window}]").Rules[0].Limit
	if l.Calendar.Zone != time.UTC {
		t.Errorf("%+v", l)
	}
	for _, rolling := range []string{"1d", "1w", "30d"} {
		l := parse(t, "rules: [{name: a, key: [], limit: 7/"+rolling+", algorithm: fixed_window}]").Rules[0].Limit
		if l.Algorithm != limiter.FixedWindow || l.Calendar != (limiter.Calendar{}) {
			t.Errorf("%s is %+v", rolling, l)
		}
	}
}

// A raised quota must find the bucket again, and the tick is a part of its name.
func TestTheTickOfACalendarWindowIsASecondWhateverTheQuota(t *testing.T) {
	for _, quota := range []string{"0", "1", "4294967295"} {
		l := parse(t, "rules: [{name: a, key: [], limit: "+quota+"/year, algorithm: fixed_window}]").Rules[0].Limit
		if l.Tick != time.Second {
			t.Errorf("%s has a tick of %v", quota, l.Tick)
		}
	}
}

func TestRulesOfOneTimeZoneShareIt(t *testing.T) {
	c := parse(t, `rules:
- {name: a, key: [], limit: 7/day, algorithm: fixed_window, timezone: Europe/Berlin}
- {name: b, key: [], limit: 7/day, algorithm: fixed_window, timezone: Europe/Berlin}`)
	if a, b := c.Rules[0].Limit, c.Rules[1].Limit; a != b {
		t.Errorf("%p and %p", a.Calendar.Zone, b.Calendar.Zone)
	}
}

func TestEveryTimeZoneThatIsListedIsThere(t *testing.T) {
	names := strings.Fields(timeZoneNames)
	if len(names) < 500 {
		t.Fatalf("%d names", len(names))
	}
	for _, name := range names {
		if _, err := time.LoadLocation(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSuggestedTimeZonesAreNearAndNeverTheOpposite(t *testing.T) {
	tests := map[string]string{
		"Europe/Berln": "Europe/Berlin", "europe/berlin": "Europe/Berlin", "New York": "America/New_York", "Tokyo": "Asia/Tokyo",
		"America/Buenos_Aires": "America/Buenos_Aires", "utc": "UTC", "GMT+1": "", "UTC+1": "", "PST": "", "CEST": "", "": "",
		"Berlin/Europe": "", strings.Repeat("x", 10_000): "",
	}
	for text, want := range tests {
		if got := nearestTimeZone(text); got != want {
			t.Errorf("%q suggests %q, want %q", text, got, want)
		}
	}
}
