package authz

import (
	"context"
	"slices"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// storeRetryAfter is the wait that a client is told when the store has failed: nobody knows the true one.
const storeRetryAfter = time.Second

// takeLocally decides what can be decided when the store has failed: the hits that are refused whatever a bucket holds and,
// unless a rule refuses the request, those of the rules that have themselves decided here, by this daemon's share.
func (s *Server) takeLocally(ctx context.Context, t take, replicas uint32) take {
	locally := !slices.ContainsFunc(t.rules, refusesOutage)
	kept := t.filter(func(h *limiter.Hit, rule *rules.Rule) bool {
		return locally && rule.OnStoreError == rules.Local || h.Limit.NeverPasses(h.Cost)
	})
	if len(kept.hits) == 0 {
		return kept
	}
	limits := make([]limiter.Limit, len(kept.hits))
	for i := range kept.hits {
		limits[i] = kept.hits[i].Limit
		if kept.rules[i].OnStoreError == rules.Local {
			kept.hits[i].Limit = limits[i].Share(replicas)
		}
	}
	kept.decisions, _ = s.local.Take(ctx, kept.hits) // never fails
	for i := range kept.decisions {
		if h := &kept.hits[i]; h.Limit.NeverPasses(h.Cost) && !limits[i].NeverPasses(h.Cost) {
			kept.decisions[i].RetryAfter = storeRetryAfter // it passes when the store is back
		}
	}
	return kept
}

// storeFailed lets the failure policies of the rules decide: one that refuses goes before those that allow. Shadow rules
// have no say, and without any other rule the outage changes nothing.
func (o *outcome) storeFailed(applied *rules.Applied) {
	o.rule = firstEnforced(applied.Rules)
	if o.rule == nil {
		return
	}
	for _, rule := range applied.Rules {
		if refusesOutage(rule) {
			o.rule = rule
			o.verdict = limiter.Verdict{Reason: limiter.ReasonStore, Speaker: -1, RetryAfter: storeRetryAfter}
			return
		}
	}
	o.verdict.Reason, o.degraded = limiter.ReasonStore, true
}

func refusesOutage(rule *rules.Rule) bool {
	return !rule.Shadow && rule.OnStoreError == rules.Refuse
}

// unavailable says that the request is refused because the store failed.
func (o *outcome) unavailable() bool {
	return !o.verdict.Allowed && o.verdict.Reason == limiter.ReasonStore
}
