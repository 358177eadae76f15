package config

import (
	"slices"
	"strings"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// survey looks over the rules of a file without problems for what is valid and probably not what was meant.
type survey struct {
	subjects []subject
	effort   int // how much comparing one question to all rules may take
}

// subject is one rule under survey.
type subject struct {
	decodedRule
	place int      // in the order of the file
	key   []string // the texts of the key's attributes, sorted
	match string   // the same for rules with the same match
	scope scope
	// inventable are those attributes of the key of which a client can send any number of values.
	inventable []string
}

func newSurvey(decoded []decodedRule) survey {
	s := survey{subjects: make([]subject, len(decoded)), effort: mostEffort}
	for i, d := range decoded {
		r := subject{decodedRule: d, place: i, key: texts(d.rule.Key), match: matchText(&d.rule.Match), scope: scopeOf(&d.rule)}
		slices.Sort(r.key)
		for _, attribute := range r.key {
			if r.scope.inventable(attribute) {
				r.inventable = append(r.inventable, attribute)
			}
		}
		s.subjects[i] = r
	}
	return s
}

// warn notes everything that the survey finds.
func (s *survey) warn() {
	s.hidden()
	s.twins()
	s.keys()
	for i := range s.subjects {
		if r := &s.subjects[i]; r.rule.Action == rules.Limit {
			r.limits()
		}
	}
}

// coverers returns those of the rules that are wanted, to ask which of them covers another.
func (s *survey) coverers(wanted func(r *subject) bool) *coverers {
	var list []*subject
	for i := range s.subjects {
		if r := &s.subjects[i]; wanted(r) {
			list = append(list, r)
		}
	}
	return newCoverers(list, s.effort)
}

// hidden warns of rules that no request reaches: an enforced rule decides first whatever they match.
func (s *survey) hidden() {
	deciders := s.coverers(func(r *subject) bool { return r.rule.Action != rules.Limit && !r.rule.Shadow })
	for i := range s.subjects {
		r := &s.subjects[i]
		before := r.place
		if r.rule.Action == rules.Limit {
			before = len(s.subjects)
		}
		if by, _ := deciders.first(&r.scope, before); by != nil {
			r.warn("no request reaches this rule: rule %s on line %d with action: %s decides each one that it matches",
				quote(by.rule.Name), by.node.Line, actions[by.rule.Action])
		}
	}
}

// twins warns of rules that count the same requests into like buckets over the same window as an earlier one.
func (s *survey) twins() {
	type identity struct{ window, timezone, key, match string }
	first := map[identity]*subject{}
	for i := range s.subjects {
		r := &s.subjects[i]
		if r.rule.Action != rules.Limit {
			continue
		}
		id := identity{formatWindow(r.rule.Limit), r.rule.Limit.Calendar.Zone.String(), strings.Join(r.key, " "), r.match}
		if twin := first[id]; twin != nil {
			r.warn("has the match, key and window of rule %s on line %d, wanted one rule instead of two",
				quote(twin.rule.Name), twin.node.Line)
			continue
		}
		first[id] = r
	}
}

// keys warns of keys with which a client gets as many buckets as it likes.
func (s *survey) keys() {
	// A rule that holds each client address to few buckets, whatever the client sends, bounds every rule that it covers.
	bounding := s.coverers(func(r *subject) bool {
		return r.rule.Action == rules.Limit && !r.rule.Shadow && r.inventable == nil && slices.Contains(r.key, "client_ip")
	})
	for i := range s.subjects {
		r := &s.subjects[i]
		at := r.entries["key"]
		if slices.Contains(r.inventable, "path") {
			at.warn("each path that a client invents is a bucket of its own, wanted route, or paths without wildcards")
		}
		if r.inventable == nil || slices.Contains(r.key, "client_ip") {
			continue
		}
		inventing := r.scope
		inventing.http = true // what can be invented is a part of HTTP requests
		if by, sure := bounding.first(&inventing, len(s.subjects)); by == nil && sure {
			at.warn("a client gets a new bucket with each %s that it invents, wanted client_ip in the key or a second rule "+
				"keyed by client_ip that matches the same requests", r.inventable[0])
		}
	}
}

// limits warns of the numbers of a rule and its overrides that do not suit the algorithm or each other.
func (r *subject) limits() {
	if l := r.rule.Limit; l.Algorithm == limiter.FixedWindow && l.Window == 7*day {
		r.entries["limit"].warn("a fixed_window of a week begins on Thursday 00:00 UTC, as the Unix epoch did, wanted %d/week, "+
			"which begins on Monday, or another algorithm", l.Quota)
	}
	switch {
	case r.rule.Ban == 0 || r.rule.Limit.Quota == 0:
	case r.rule.Shadow:
		r.entries["ban"].warn("a rule in shadow mode bans nobody, so it counts fewer refusals than it would make, wanted mode: enforce or no ban")
	case r.rule.Ban <= longestWait(r.rule.Limit):
		r.entries["ban"].warn("%s is no longer than the %s for which an exhausted bucket refuses anyway, so it changes little, wanted more",
			formatLength(r.rule.Ban), formatLength(longestWait(r.rule.Limit)))
	}
	r.suits(r.rule.Limit)
	r.affords(r.rule.Limit, r.rule.Cost, r.rule.CostFrom)
	for i, f := range r.overrides {
		o := &r.rule.Overrides[i]
		f.suits(o.Limit)
		f.affords(o.Limit, o.Cost, o.CostFrom)
	}
}

// longestWait is for how long at most an exhausted bucket refuses a hit of cost 1, rounded down to milliseconds. The quota is
// not 0.
func longestWait(l limiter.Limit) time.Duration {
	switch l.Algorithm {
	case limiter.TokenBucket:
		return (l.Window / time.Duration(l.Quota)).Truncate(time.Millisecond)
	case limiter.CalendarWindow:
		return l.Window - day // without what the clocks may be changed by
	}
	return l.Window
}

// suits warns of a limit, if it is written here, that does not suit its algorithm.
func (f fields) suits(l limiter.Limit) {
	at, ok := f.get("limit")
	switch {
	case !ok:
	case l.Algorithm == limiter.SlidingCounter && l.Quota > 0 && l.Quota < 10:
		at.warn("sliding_counter is coarse below a quota of 10, wanted sliding_log, which is exact")
	case l.Algorithm == limiter.SlidingLog && l.Quota > 1_000:
		at.warn("sliding_log keeps a time for each of %d units in each bucket, wanted grouped_log above a quota of 1000", l.Quota)
	}
}

// affords warns of a cost above what the bucket holds, at the first of the numbers that are written here and make it so.
func (f fields) affords(l limiter.Limit, cost uint32, from *rules.CostFrom) {
	written := f.replaces()
	if written == nil {
		return
	}
	const above = "%d is above the %d that the bucket holds, so %s is refused, wanted at most that"
	switch at := written[0]; {
	case l.Quota == 0:
	case from == nil && l.NeverPasses(cost):
		at.warn(above, cost, l.Capacity(), "every request")
	case from != nil && l.NeverPasses(from.Min):
		at.warn("a min of "+above, from.Min, l.Capacity(), "every request")
	case from != nil && l.NeverPasses(cost):
		at.warn("a default of "+above, cost, l.Capacity(), "each request that states no cost")
	}
	if at, ok := f.get("cost"); ok && from != nil && slices.Contains([]string{"client_ip", "path", "route"}, from.Attribute.String()) {
		at.warn("%s is never a number, so each request costs the default, wanted an attribute that states a cost", from.Attribute)
	}
}
