package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

const day = 24 * time.Hour

// units are the units of a length of time, the longest first.
var units = []struct {
	name   string
	length time.Duration
}{{"w", 7 * day}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// unitWords are words that people write for a unit.
var unitWords = map[string]string{
	"msec": "ms", "millisecond": "ms", "milliseconds": "ms", "millis": "ms",
	"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"hr": "h", "hrs": "h", "hour": "h", "hours": "h", "day": "d", "days": "d", "week": "w", "weeks": "w",
}

// periods are the words for the windows of a calendar, and rolling what comes nearest to each of those without one.
var (
	periods = []string{limiter.Day: "day", limiter.Week: "week", limiter.Month: "month", limiter.Year: "year"}
	rolling = []string{limiter.Day: "1d", limiter.Week: "1w", limiter.Month: "30d", limiter.Year: "365d"}
)

// parseLimit reads QUOTA/WINDOW into a limit that has no algorithm yet.
func parseLimit(text string) (l limiter.Limit, err error) {
	before, after, ok := strings.Cut(text, "/")
	if !ok {
		better := ""
		if n, err := strconv.ParseUint(text, 10, 32); err == nil {
			better = fmt.Sprintf("%d/1m", n)
		}
		return l, fmt.Errorf("%s has no window, wanted QUOTA/WINDOW like 100/1m%s", quote(text), didYouMean(better))
	}
	n, err := strconv.ParseUint(before, 10, 32)
	switch {
	case err == nil && hasLeadingZero(before):
		return l, fmt.Errorf("the quota %s of %s has a leading zero, wanted a whole number without", quote(before), quote(text))
	case err != nil:
		return l, fmt.Errorf("the quota %s of %s is out of bounds, wanted a whole number from 0 to %d",
			quote(before), quote(text), uint32(math.MaxUint32))
	}
	l.Quota = uint32(n)
	if period := slices.Index(periods, after); period > 0 {
		l.Calendar.Period = limiter.Period(period)
		l.Window = l.Calendar.Longest()
		return l, nil
	}
	l.Window, err = parseLength(after, limiter.MinWindow, limiter.MaxWindow)
	var bad *lengthError
	if errors.As(err, &bad) {
		bad.text = text
		if better := cmp.Or(bad.better, nearest(after, periods)); better != "" {
			bad.better = before + "/" + better
		}
	}
	return l, err
}

// lengthError says why a text has no length of time that is wanted.
type lengthError struct {
	text   string
	what   string // what is wrong with it, and what was wanted
	better string // what was probably meant; "" when that is unknown
}

func (e *lengthError) Error() string { return quote(e.text) + " " + e.what + didYouMean(e.better) }

// parseLength reads a length of time: one or more whole numbers, each with its unit, as in 1h30m.
func parseLength(text string, least, most time.Duration) (time.Duration, error) {
	outside := func(what string) error {
		return &lengthError{text: text, what: fmt.Sprintf("is too %s, wanted %s to %s", what, formatLength(least), formatLength(most))}
	}
	var total time.Duration
	for rest := text; rest != ""; {
		digits := rest[:leading(rest, isDigit)]
		word := rest[len(digits):]
		word = word[:leading(word, isLetter)]
		rest = rest[len(digits)+len(word):]
		unit := unitOf(word)
		switch {
		case digits == "" || unit == 0:
			return 0, misread(text, digits, word)
		case hasLeadingZero(digits):
			return 0, &lengthError{text: text, what: fmt.Sprintf("has a leading zero in %s, wanted whole numbers without", clip(digits))}
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > uint64((most-total)/unit) {
			return 0, outside("long")
		}
		total += time.Duration(n) * unit
	}
	switch {
	case text == "":
		return 0, misread(text, "", "")
	case total < least:
		return 0, outside("short")
	}
	return total, nil
}

// misread says what is wrong with a length of time of which one part has these digits and this word for its unit.
func misread(text, digits, word string) *lengthError {
	const want = "wanted a length of time like 500ms, 1m or 1h30m"
	e := lengthError{text: text}
	repaired := digits
	switch {
	case digits == "" && word == "":
		e.what = "has no length of time, " + want
	case digits == "":
		e.what = fmt.Sprintf("has no number before %s, %s", quote(word), want)
		repaired = "1" + usual(word)
	case word == "":
		e.what = fmt.Sprintf("has no unit after %s, %s", clip(digits), want)
	default:
		e.what = fmt.Sprintf("has the unit %s, wanted ms, s, m, h, d or w", quote(word))
		repaired += usual(word)
	}
	// Only a text that is faulty as a whole, and whose unit is clear, can be repaired.
	if text == digits+word && leading(repaired, isDigit) < len(repaired) {
		e.better = repaired
	}
	return &e
}

// leading returns how many of the first bytes are of a kind.
func leading(text string, kind func(byte) bool) int {
	for i := range len(text) {
		if !kind(text[i]) {
			return i
		}
	}
	return len(text)
}

// hasLeadingZero reports whether a number might be read as octal by some.
func hasLeadingZero(digits string) bool { return len(digits) > 1 && digits[0] == '0' }

func isDigit(b byte) bool  { return b >= '0' && b <= '9' }
func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// unitOf returns the length of a unit; 0 when there is none of that name.
func unitOf(name string) time.Duration {
	for _, u := range units {
		if u.name == name {
			return u.length
		}
	}
	return 0
}

// usual returns the unit that a word means; "" when that is unknown.
func usual(word string) string {
	word = strings.ToLower(word)
	if unitOf(word) != 0 {
		return word
	}
	return unitWords[word]
}

// formatLength writes a length of whole milliseconds in the largest unit that holds it exactly: 90m, 1d.
func formatLength(d time.Duration) string {
	for _, u := range units {
		if d >= u.length && d%u.length == 0 {
			return fmt.Sprintf("%d%s", d/u.length, u.name)
		}
	}
	return "0s"
}
