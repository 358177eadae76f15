package rules

import (
	"slices"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// Set is all rules of one configuration, ready to be applied. It never changes and is safe for concurrent use. NewSet makes
// one; the zero value has no rules.
type Set struct {
	list []Rule // in file order
	// rules are in the order in which they are looked at: those with an action of their own, then the limits, each in
	// file order.
	rules  []compiledRule
	index  index
	client ClientIP
	tagged bool // hits have tags
}

type compiledRule struct {
	*Rule
	keyHead []byte // of a limit rule's keys
	fastest uint32 // of a token bucket with overrides, the largest quota
	tagged  bool   // its buckets have tags
	tagPart int    // as tagPart returns it
}

// An Option changes what a Set does beside matching.
type Option func(*Set)

// WithTags gives each hit its tag, which decides where in a Redis Cluster its bucket lies. Elsewhere it is wasted work.
func WithTags() Option { return func(s *Set) { s.tagged = true } }

// NewSet prepares the rules, given in file order with unique names. It keeps a copy of the list.
func NewSet(rules []Rule, client ClientIP, options ...Option) *Set {
	s := &Set{list: slices.Clone(rules), client: client}
	for _, option := range options {
		option(s)
	}
	for i := range s.list {
		if s.list[i].Action != Limit {
			s.add(&s.list[i])
		}
	}
	for i := range s.list {
		if s.list[i].Action == Limit {
			s.add(&s.list[i])
		}
	}
	return s
}

// Rules returns the rules in file order: the very ones that Applied points to.
func (s *Set) Rules() []*Rule {
	rules := make([]*Rule, len(s.list))
	for i := range s.list {
		rules[i] = &s.list[i]
	}
	return rules
}

func (s *Set) add(r *Rule) {
	compiled := compiledRule{Rule: r}
	if r.Action == Limit {
		compiled.keyHead, compiled.fastest = keyHead(r), fastest(r)
		compiled.tagged, compiled.tagPart = s.tagged, tagPart(r.Key)
	}
	s.index.add(int32(len(s.rules)), &r.Match)
	s.rules = append(s.rules, compiled)
}

// fastest is the quota by which the rule's bucket may fill up at the most; 0 if that is the hit's own.
func fastest(r *Rule) (quota uint32) {
	if r.Limit.Algorithm == limiter.TokenBucket && len(r.Overrides) > 0 {
		quota = r.Limit.Quota
		for i := range r.Overrides {
			quota = max(quota, r.Overrides[i].Limit.Quota)
		}
	}
	return quota
}

// Applied is what the rules make of one request.
type Applied struct {
	// Decided is the enforced rule with an action of its own that decided; nil when none did. When one did, no limit rule
	// was looked at.
	Decided *Rule
	// ShadowDecided are the shadow rules with an action of their own that matched before one decided.
	ShadowDecided []*Rule
	// Hits are what the limit rules that apply ask for, in file order; Rules[i] made Hits[i].
	Hits  []limiter.Hit
	Rules []*Rule
	// Missing are the limit rules that matched and lacked a part of their key, whatever they then did.
	Missing []*Rule
	// Refused are those of Missing that refuse the request for it, shadow rules too.
	Refused []*Rule
	// InvalidCost are the rules of Rules to which the request stated a cost that is none.
	InvalidCost []*Rule
	// ClientUnknown says that a rule needed the client's address and there is none.
	ClientUnknown bool
	// UntrustedHeader says that a rule needed the client's address and that a header with one was there but not believed.
	UntrustedHeader bool
}

// Apply finds what the rules make of the request, which it does not change.
func (s *Set) Apply(req *Request) (a Applied) {
	s.ApplyTo(&a, req)
	return a
}

// ApplyTo is Apply for callers that have an Applied which is no longer needed: its memory is used again.
func (s *Set) ApplyTo(a *Applied, req *Request) {
	*a = Applied{Hits: a.Hits[:0], Rules: a.Rules[:0]}
	f := newFacts(req, &s.client)
	var space [64]int32
	s.evaluate(a, &f, s.index.find(space[:0], &f))
}

// evaluate looks at the rules of these numbers in turn.
func (s *Set) evaluate(a *Applied, f *facts, numbers []int32) {
	for _, number := range numbers {
		r := &s.rules[number]
		route, ok := f.match(&r.Match, r.Action == Allow)
		if !ok {
			continue
		}
		if r.Action == Limit {
			a.addLimit(f, r, route)
		} else if r.Shadow {
			a.ShadowDecided = append(a.ShadowDecided, r.Rule)
		} else {
			a.Decided = r.Rule
			break
		}
	}
	a.ClientUnknown, a.UntrustedHeader = f.clientUnknown, f.untrustedHeader
}

// addLimit notes what a limit rule that matched makes of the request.
func (a *Applied) addLimit(f *facts, r *compiledRule, route string) {
	found := f.findBucket(r, route)
	if found.missing {
		a.Missing = append(a.Missing, r.Rule)
	}
	switch {
	case found.refused:
		a.Refused = append(a.Refused, r.Rule)
		return
	case found.skipped:
		return
	}
	numbers := f.numbers(r)
	cost, valid := f.costOf(numbers, route)
	if !valid {
		a.InvalidCost = append(a.InvalidCost, r.Rule)
	}
	a.Hits = append(a.Hits, limiter.Hit{
		Rule: r.Name, Key: found.key, Limit: numbers.limit, Cost: cost, Shadow: r.Shadow, CountDenied: r.CountDenied, Ban: r.Ban, Fastest: r.fastest, Tag: found.tag,
	})
	a.Rules = append(a.Rules, r.Rule)
}
