package config

import (
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// timeZoneNames are the names of the IANA time zone database, one a line. Other names may be files of some machine's too, such as
// localtime and right/UTC, and mean something else on the next.
//
//go:embed timezones.txt
var timeZoneNames string

// timezone reads the time zone of a calendar window, whose limit is read already.
func (f fields) timezone(l *limiter.Limit) {
	if l.Calendar.Period != 0 {
		l.Calendar.Zone = time.UTC
	}
	v, ok := f.get("timezone")
	if !ok {
		return
	}
	zone := v.timeZone()
	switch {
	case l.Calendar.Period != 0:
		l.Calendar.Zone = zone
	case l.Window != 0:
		f.keys["timezone"].fail("goes with a calendar window alone, wanted a limit like 100/day, 100/week, 100/month or 100/year, or timezone left out")
	}
}

// timeZone returns the time zone of that name; nil when there is none.
func (v value) timeZone() *time.Location {
	const want = "a name of the IANA database like Europe/Berlin"
	name, ok := v.text(want)
	if !ok {
		return nil
	}
	if zone := v.d.timeZones[name]; zone != nil {
		return zone
	}
	zone, err := time.LoadLocation(name)
	if err != nil || !slices.Contains(strings.Fields(timeZoneNames), name) {
		v.fail("%s is no time zone, wanted %s%s", quote(name), want, didYouMean(nearestTimeZone(name)))
		return nil
	}
	if v.d.timeZones == nil {
		v.d.timeZones = map[string]*time.Location{}
	}
	v.d.timeZones[name] = zone
	return zone
}

// nearestTimeZone returns the time zone that a misspelt name, or that of a city alone, means; "" when that is unknown. It
// suggests none of the old abbreviations, which are near to many words, and no Etc/GMT+1, which is the opposite of UTC+1.
func nearestTimeZone(text string) string {
	if strings.EqualFold(text, "UTC") {
		return "UTC"
	}
	names := slices.DeleteFunc(strings.Fields(timeZoneNames), func(name string) bool {
		return !strings.Contains(name, "/") || strings.HasPrefix(name, "Etc/")
	})
	lower := strings.Fields(strings.ToLower(strings.Join(names, " ")))
	text = strings.ReplaceAll(strings.ToLower(text), " ", "_")
	i := slices.IndexFunc(lower, func(name string) bool { return strings.HasSuffix(name, "/"+text) })
	if i < 0 {
		i = slices.Index(lower, nearest(text, lower))
	}
	if i < 0 {
		return ""
	}
	return names[i]
}
