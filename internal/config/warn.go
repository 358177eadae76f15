package config

import (
	"slices"
	"strings"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// survey looks over the rules of a file without problems for what is valid and probably not what was meant.
type survey struct {
	subjects []subject
	found    []Problem
}

// subject is one rule under survey.
type subject struct {
	decodedRule
	place int      // in the order of the file
	key   []string // the texts of the key's attributes, sorted
	scope scope
	// inventable are those attributes of the key of which a client can send any number of values.
	inventable []string
}

// warnings returns what the survey of a file's rules finds.
func warnings(file value, decoded []decodedRule) []Problem {
	if len(decoded) == 0 {
		return []Problem{file.entry("rules", file.node).problem("there is no rule, so every request is allowed; wanted at least one")}
	}
	s := survey{subjects: make([]subject, len(decoded))}
	for i, d := range decoded {
		r := subject{decodedRule: d, place: i, key: texts(d.rule.Key), scope: scopeOf(&d.rule.Match)}
		slices.Sort(r.key)
		for _, attribute := range r.key {
			if r.scope.inventable(attribute) {
				r.inventable = append(r.inventable, attribute)
			}
		}
		s.subjects[i] = r
	}
	s.hidden()
	s.twins()
	s.keys()
	for i := range s.subjects {
		if r := &s.subjects[i]; r.rule.Action == rules.Limit {
			s.limits(r)
		}
	}
	return s.found
}

func (s *survey) warn(at value, format string, args ...any) {
	s.found = append(s.found, at.problem(format, args...))
}

// hidden warns of rules that no request reaches: an enforced rule decides first whatever they match.
func (s *survey) hidden() {
	deciders := coverers{}
	for i := range s.subjects {
		if r := &s.subjects[i]; r.rule.Action != rules.Limit && !r.rule.Shadow {
			deciders.add(r)
		}
	}
	for i := range s.subjects {
		r := &s.subjects[i]
		by := deciders.first(r)
		if by != nil && (r.rule.Action == rules.Limit || by.place < r.place) {
			s.warn(r.value, "no request reaches this rule: rule %s on line %d with action: %s decides each one that it matches",
				quote(by.rule.Name), by.node.Line, actions[by.rule.Action])
		}
	}
}

// twins warns of rules that count the same requests into like buckets over the same window as an earlier one. A rule in
// the other mode is no twin: a shadow rule beside an enforced one tries another limit.
func (s *survey) twins() {
	type identity struct {
		shadow bool
		window int64
		rest   string
	}
	first := map[identity]*subject{}
	for i := range s.subjects {
		r := &s.subjects[i]
		if r.rule.Action != rules.Limit {
			continue
		}
		id := identity{r.rule.Shadow, int64(r.rule.Limit.Window), strings.Join(r.key, " ") + "\n" + r.scope.String()}
		if twin := first[id]; twin != nil {
			s.warn(r.value, "has the match, key and window of rule %s on line %d, wanted one rule instead of two",
				quote(twin.rule.Name), twin.node.Line)
			continue
		}
		first[id] = r
	}
}

// keys warns of keys with which a client gets as many buckets as it likes.
func (s *survey) keys() {
	bounding := coverers{}
	for i := range s.subjects {
		// A rule that holds each client address to few buckets, whatever the client sends, bounds every rule that it covers.
		r := &s.subjects[i]
		if r.rule.Action == rules.Limit && !r.rule.Shadow && r.inventable == nil && slices.Contains(r.key, "client_ip") {
			bounding.add(r)
		}
	}
	for i := range s.subjects {
		r := &s.subjects[i]
		at := r.entries["key"]
		if slices.Contains(r.inventable, "path") {
			s.warn(at, "each path that a client invents is a bucket of its own, wanted route, or paths without wildcards")
		}
		if r.inventable != nil && !slices.Contains(r.key, "client_ip") && bounding.first(r) == nil {
			s.warn(at, "a client gets a new bucket with each %s that it invents, wanted client_ip in the key or a second rule "+
				"keyed by client_ip that matches the same requests", r.inventable[0])
		}
	}
}

// limits warns of the numbers of a rule that do not suit the algorithm or each other.
func (s *survey) limits(r *subject) {
	l := r.rule.Limit
	at := r.entries["limit"]
	switch {
	case l.Algorithm == limiter.SlidingCounter && l.Quota > 0 && l.Quota < 10:
		s.warn(at, "sliding_counter is coarse below a quota of 10, wanted sliding_log, which is exact")
	case l.Algorithm == limiter.SlidingLog && l.Quota > 1_000:
		s.warn(at, "sliding_log keeps a time for each of %d units in each bucket, wanted grouped_log above a quota of 1000", l.Quota)
	case l.Algorithm == limiter.FixedWindow && l.Window == 7*day:
		s.warn(at, "a fixed_window of a week begins on Thursday 00:00 UTC, as the Unix epoch did, wanted another window or "+
			"algorithm if it should not")
	}
	if l.Quota > 0 && l.NeverPasses(r.rule.Cost) {
		s.warn(r.entries["cost"], "%d is above the %d that the bucket holds, so every request is refused, wanted at most that",
			r.rule.Cost, l.Capacity())
	}
}
