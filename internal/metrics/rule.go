package metrics

import "github.com/prometheus/client_golang/prometheus"

// Why a rule refuses, in the labels of ratelimitd_denials_total.
var denialReasons = []string{"limit", "ban", "limit_zero", "cost", "key_missing", "rule", "store"}

// Rule counts for one rule.
type Rule struct {
	allowed, denied, shadowDenied, keyMissing, invalidCost prometheus.Counter
	denials                                                map[string]prometheus.Counter // by reason
}

// Rule returns the counters of the rule of that name, creating at 0 those that are new. A rule that outlives a reload
// counts on where it was. Asking takes some time: do it once for each rule that a reload brings, not for each request.
func (m *Metrics) Rule(name string) *Rule {
	r := &Rule{
		allowed:      m.decisions.WithLabelValues(name, "allowed"),
		denied:       m.decisions.WithLabelValues(name, "denied"),
		shadowDenied: m.decisions.WithLabelValues(name, "shadow_denied"),
		keyMissing:   m.keyMissing.WithLabelValues(name),
		invalidCost:  m.invalidCost.WithLabelValues(name),
		denials:      make(map[string]prometheus.Counter, len(denialReasons)),
	}
	for _, reason := range denialReasons {
		r.denials[reason] = m.denials.WithLabelValues(name, reason)
	}
	return r
}

// Allowed counts a request that the rule let pass, whatever other rules did with it.
func (r *Rule) Allowed() { r.allowed.Inc() }

// Denied counts a request that the rule refused: reason is limit, ban, limit_zero, cost, key_missing, rule or store.
func (r *Rule) Denied(reason string) {
	r.denied.Inc()
	if c, ok := r.denials[reason]; ok {
		c.Inc()
	}
}

// ShadowDenied counts a request that the rule would have refused were it not in shadow mode.
func (r *Rule) ShadowDenied() { r.shadowDenied.Inc() }

// KeyMissing counts a request that lacked a part of the rule's key.
func (r *Rule) KeyMissing() { r.keyMissing.Inc() }

// InvalidCost counts a request that stated a cost to the rule which is no whole number.
func (r *Rule) InvalidCost() { r.invalidCost.Inc() }
