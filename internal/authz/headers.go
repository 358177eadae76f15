package authz

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// headers appends the headers of an answer, each a HeaderValueOption. Values are made of rule names, numbers and fixed words:
// Envoy writes a line break in a value through to the client, so nothing that a client sent may get into one unseen.
type headers struct {
	b     []byte
	field byte // of the message that they are a part of
	// overwrite makes them take the place of those that the upstream sends: by default Envoy adds second ones. Of a denied
	// response the headers with an action vanish.
	overwrite bool
}

// The numbers of a header's fields, from Envoy's .proto files.
const (
	optionHeader, optionAction = 1, 3
	headerName, headerValue    = 1, 2

	overwriteOrAdd = 2 // OVERWRITE_IF_EXISTS_OR_ADD
)

func (h *headers) text(name, value string) { addHeader(h, name, value) }

func (h *headers) number(name string, value int64) {
	var space [20]byte
	addHeader(h, name, strconv.AppendInt(space[:0], value, 10))
}

func addHeader[T string | []byte](h *headers, name string, value T) {
	b := open(h.b, h.field)
	begin := len(b)
	b = open(b, optionHeader)
	inner := len(b)
	b = appendText(b, headerName, name)
	b = appendText(b, headerValue, value)
	b = shut(b, inner)
	if h.overwrite {
		b = appendNumber(b, optionAction, overwriteOrAdd)
	}
	h.b = shut(b, begin)
}

// appendRefusalHeaders appends the headers of a refusal: the wait, if there is one, and the limits.
func (o *outcome) appendRefusalHeaders(h headers, answer *Answer) headers {
	if seconds, ok := o.retryAfter(); ok {
		h.number("retry-after", seconds)
	}
	return o.appendLimits(h, answer)
}

// appendLimits appends the families of limit headers that are switched on, unless no bucket has a say in the answer.
func (o *outcome) appendLimits(h headers, answer *Answer) headers {
	if o.verdict.Speaker < 0 {
		return h
	}
	if answer.XRateLimit {
		speaker := o.decisions[o.verdict.Speaker]
		h.number("x-ratelimit-limit", int64(o.hits[o.verdict.Speaker].Limit.Capacity()))
		h.number("x-ratelimit-remaining", int64(remaining(speaker)))
		if seconds, ok := reset(speaker); ok {
			h.number("x-ratelimit-reset", seconds)
		}
	}
	if answer.RateLimit {
		o.appendRateLimit(&h)
	}
	return h
}

// appendRateLimit appends RateLimit-Policy and RateLimit of the IETF draft: a list item for each enforced rule that applies, in
// file order; of a refusal, for each rule that refuses.
func (o *outcome) appendRateLimit(h *headers) {
	var space [2][256]byte
	p, s := space[0][:0], space[1][:0]
	for i := range o.hits {
		hit, decision := &o.hits[i], o.decisions[i]
		if hit.Shadow || decision.Skipped || decision.Allowed != o.verdict.Allowed {
			continue
		}
		if len(p) > 0 {
			p, s = append(p, ", "...), append(s, ", "...)
		}
		p = appendPolicy(p, hit)
		s = appendState(s, hit.Rule, decision)
	}
	addHeader(h, "ratelimit-policy", p)
	addHeader(h, "ratelimit", s)
}

func appendPolicy(b []byte, hit *limiter.Hit) []byte {
	b = append(b, '"')
	b = append(b, hit.Rule...)
	b = append(b, `";q=`...)
	b = strconv.AppendUint(b, uint64(hit.Limit.Capacity()), 10)
	if seconds := policyWindow(hit.Limit); seconds > 0 {
		b = append(b, ";w="...)
		b = strconv.AppendUint(b, seconds, 10)
	}
	return b
}

func appendState(b []byte, rule string, d limiter.Decision) []byte {
	b = append(b, '"')
	b = append(b, rule...)
	b = append(b, `";r=`...)
	b = strconv.AppendUint(b, uint64(remaining(d)), 10)
	if seconds, ok := reset(d); ok {
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, seconds, 10)
	}
	return b
}

// policyWindow is the time in seconds in which the capacity comes back; 0 when it never does, is no whole number of seconds
// or differs from window to window, as in a calendar. For a token bucket it is ⌈burst·window/quota⌉.
func policyWindow(l limiter.Limit) uint64 {
	switch {
	case l.Quota == 0 || l.Algorithm == limiter.CalendarWindow:
		return 0
	case l.Algorithm == limiter.TokenBucket:
		hi, lo := bits.Mul64(uint64(l.Burst), uint64(l.Window))
		perSecond := uint64(l.Quota) * uint64(time.Second)
		if hi >= perSecond { // beyond the bounds of a Limit
			return 0
		}
		seconds, rest := bits.Div64(hi, lo, perSecond)
		if rest > 0 {
			seconds++
		}
		return seconds
	case l.Window%time.Second != 0:
		return 0
	}
	return uint64(l.Window / time.Second)
}

// remaining is what is shown as left: nothing in a bucket that refuses, whatever a smaller cost could still get.
func remaining(d limiter.Decision) uint32 {
	if !d.Allowed {
		return 0
	}
	return d.Remaining
}

// reset is the time in whole seconds until more units come, or until the refused hit passes; ok is false if it never does.
func reset(d limiter.Decision) (seconds int64, ok bool) {
	switch {
	case d.Allowed:
		return wholeSeconds(d.ResetAfter), true
	case d.RetryAfter == limiter.Never:
		return 0, false
	}
	return max(1, wholeSeconds(d.RetryAfter)), true
}

// retryAfter is the wait that a refused client is told, in seconds, at least 1; ok is false if waiting does not help.
func (o *outcome) retryAfter() (seconds int64, ok bool) {
	if o.verdict.RetryAfter == limiter.Never {
		return 0, false
	}
	return max(1, wholeSeconds(o.verdict.RetryAfter)), true
}

// wholeSeconds rounds up: a client that waits as long as it is told must not come too early.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}
