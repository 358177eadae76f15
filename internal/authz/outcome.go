package authz

import (
	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// take is what the store is asked about one request, and what it says: rules[i] made hits[i], and decisions[i] answers it.
type take struct {
	hits      []limiter.Hit
	rules     []*rules.Rule
	decisions []limiter.Decision
}

// outcome is what was decided about one request: all that its answer is made of.
type outcome struct {
	// take holds the hits that were decided; if the store failed, those alone that can be without it.
	take
	verdict limiter.Verdict // its Speaker is an index of hits
	// rule is the one that the answer names; nil when no enforced rule applied.
	rule *rules.Rule
	// shadowDenied are the shadow rules that would have refused.
	shadowDenied []*rules.Rule
	// degraded says that the store failed and a policy that does not refuse decided.
	degraded bool
}

// takeOf leaves out the enforced hits of a request that is refused anyway: they would not be spent. Shadow hits are decided
// on their own, also then, and hits that count refused requests are spent whoever refuses.
func takeOf(applied *rules.Applied) take {
	all := take{hits: applied.Hits, rules: applied.Rules}
	if firstEnforced(applied.Refused) == nil {
		return all
	}
	return all.filter(func(h *limiter.Hit, _ *rules.Rule) bool { return h.Shadow || h.CountDenied })
}

func (t take) filter(keep func(*limiter.Hit, *rules.Rule) bool) take {
	var kept take
	for i := range t.hits {
		if keep(&t.hits[i], t.rules[i]) {
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
		o.degraded = storeErr != nil && o.rule.OnStoreError == rules.Local
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

func firstEnforced(list []*rules.Rule) *rules.Rule {
	for _, rule := range list {
		if !rule.Shadow {
			return rule
		}
	}
	return nil
}

// metric is the outcome's metric label.
func (o *outcome) metric(applied *rules.Applied) metrics.Outcome {
	switch {
	case o.unavailable():
		return metrics.Unavailable
	case !o.verdict.Allowed:
		return metrics.Denied
	case o.degraded:
		return metrics.Degraded
	case applied.Decided == nil && len(applied.ShadowDecided)+len(applied.Rules)+len(applied.Missing) == 0:
		return metrics.Unmatched
	}
	return metrics.Allowed
}
