package authz

import (
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// storeRetryAfter is the wait that a client is told when the store has failed: nobody knows the true one.
const storeRetryAfter = time.Second

// take is what the store is asked about one request, and what it says: rules[i] made hits[i], and decisions[i] answers it.
type take struct {
	hits      []limiter.Hit
	rules     []*rules.Rule
	decisions []limiter.Decision
}

// outcome is what was decided about one request: all that its answer is made of.
type outcome struct {
	// take holds the hits that were decided; if the store failed, those alone that can never pass.
	take
	verdict limiter.Verdict // its Speaker is an index of hits
	// rule is the one that the answer names; nil when no enforced rule applied.
	rule *rules.Rule
	// shadowDenied are the shadow rules that would have refused.
	shadowDenied []*rules.Rule
	// degraded says that the request is allowed because the store failed.
	degraded bool
}

// takeOf leaves out the enforced hits of a request that is refused anyway: they would not be spent. Shadow hits are decided
// on their own, also then, and hits that count refused requests are spent whoever refuses.
func takeOf(applied *rules.Applied) take {
	all := take{hits: applied.Hits, rules: applied.Rules}
	if firstEnforced(applied.Refused) == nil {
		return all
	}
	return all.filter(func(h *limiter.Hit) bool { return h.Shadow || h.CountDenied })
}

// withoutStore is what can be said of the hits when the store has failed: some are refused whatever a bucket holds.
func (t take) withoutStore() take {
	never := t.filter(func(h *limiter.Hit) bool { return h.Limit.NeverPasses(h.Cost) })
	never.decisions = make([]limiter.Decision, len(never.hits))
	for i := range never.decisions {
		never.decisions[i].RetryAfter = limiter.Never
	}
	return never
}

func (t take) filter(keep func(*limiter.Hit) bool) take {
	var kept take
	for i := range t.hits {
		if keep(&t.hits[i]) {
			kept.hits = append(kept.hits, t.hits[i])
			kept.rules = append(kept.rules, t.rules[i])
		}
	}
	return kept
}

// conclude puts together what refuses or allows the request: 403 goes before 429, and 429 before 503.
func conclude(applied *rules.Applied, t take, verdict limiter.Verdict, storeErr error) outcome {
	o := outcome{take: t, verdict: verdict, shadowDenied: shadowDenied(applied, t)}
	switch refused := firstEnforced(applied.Refused); {
	case applied.Decided != nil && applied.Decided.Action == rules.Allow:
		o.rule = applied.Decided
		o.verdict = limiter.Verdict{Allowed: true, Reason: limiter.ReasonRule, Speaker: -1}
	case applied.Decided != nil:
		o.rule = applied.Decided
		o.verdict = limiter.Verdict{Reason: limiter.ReasonRule, Speaker: -1, RetryAfter: limiter.Never}
	case refused != nil:
		o.rule = refused
		o.verdict = limiter.Verdict{Reason: limiter.ReasonKeyMissing, Speaker: -1, RetryAfter: limiter.Never}
	case verdict.Speaker >= 0:
		o.rule = t.rules[verdict.Speaker]
	case storeErr != nil:
		o.storeFailed(applied)
	}
	return o
}

// shadowDenied lists the shadow rules that would have refused the request.
func shadowDenied(applied *rules.Applied, t take) []*rules.Rule {
	var denied []*rules.Rule
	for _, rule := range applied.ShadowDecided {
		if rule.Action == rules.Deny {
			denied = append(denied, rule)
		}
	}
	for _, rule := range applied.Refused {
		if rule.Shadow {
			denied = append(denied, rule)
		}
	}
	for i, d := range t.decisions {
		if t.hits[i].Shadow && !d.Allowed && !d.Skipped {
			denied = append(denied, t.rules[i])
		}
	}
	return denied
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

func firstEnforced(list []*rules.Rule) *rules.Rule {
	for _, rule := range list {
		if !rule.Shadow {
			return rule
		}
	}
	return nil
}

// unavailable says that the request is refused because the store failed.
func (o *outcome) unavailable() bool {
	return !o.verdict.Allowed && o.verdict.Reason == limiter.ReasonStore
}

// metric is the outcome's metric label.
func (o *outcome) metric(applied *rules.Applied) metrics.Outcome {
	switch {
	case o.unavailable():
		return metrics.Unavailable
	case o.degraded:
		return metrics.Degraded
	case !o.verdict.Allowed:
		return metrics.Denied
	case applied.Decided == nil && len(applied.ShadowDecided)+len(applied.Rules)+len(applied.Missing) == 0:
		return metrics.Unmatched
	}
	return metrics.Allowed
}
