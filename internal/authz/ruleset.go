package authz

import (
	"maps"
	"slices"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// ruleset is a snapshot in use, with each rule's counters looked up once.
type ruleset struct {
	Snapshot
	reads    rules.Reads
	counters map[*rules.Rule]*metrics.Rule
	unseen   unseen
}

// Use decides the requests that come from now on by that snapshot. A rule that has its name from before counts on.
func (s *Server) Use(snapshot Snapshot) {
	if snapshot.Answer.Status == 0 {
		snapshot.Answer.Status = statusLimited
	}
	snapshot.Replicas = max(1, snapshot.Replicas)
	all := snapshot.Rules.Rules()
	set := &ruleset{Snapshot: snapshot, reads: snapshot.Rules.Reads(), counters: make(map[*rules.Rule]*metrics.Rule, len(all))}
	for _, rule := range all {
		set.counters[rule] = s.metrics.Rule(rule.Name)
	}
	set.unseen.watch(slices.Collect(maps.Keys(snapshot.Rules.Readers())), s.current.Load(), s.watched)
	s.current.Store(set)
}

// count counts what each rule said.
func (s *ruleset) count(applied *rules.Applied, o *outcome) {
	for _, rule := range applied.Missing {
		s.counters[rule].KeyMissing()
	}
	for _, rule := range applied.InvalidCost {
		s.counters[rule].InvalidCost()
	}
	for _, rule := range applied.ShadowDecided {
		if rule.Action == rules.Allow {
			s.counters[rule].Allowed()
		}
	}
	for _, rule := range o.shadowDenied {
		s.counters[rule].ShadowDenied()
	}
	if rule := applied.Decided; rule != nil && rule.Action == rules.Allow {
		s.counters[rule].Allowed()
	} else if rule != nil {
		s.counters[rule].Denied(string(limiter.ReasonRule))
	}
	for _, rule := range applied.Refused {
		if !rule.Shadow {
			s.counters[rule].Denied(string(limiter.ReasonKeyMissing))
		}
	}
	for i, hit := range o.hits {
		switch counters := s.counters[o.rules[i]]; {
		case o.decisions[i].Skipped:
		case o.decisions[i].Allowed:
			counters.Allowed()
		case !hit.Shadow:
			counters.Denied(string(limiter.RefusalReason(hit, o.decisions[i])))
		}
	}
	if o.unavailable() {
		for _, rule := range applied.Rules {
			if refusesOutage(rule) {
				s.counters[rule].Denied(string(limiter.ReasonStore))
			}
		}
	}
}
