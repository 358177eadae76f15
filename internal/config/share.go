package config

import (
	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// shares warns of what the daemons' shares of the limits, which hold while Redis is away, are not likely meant to be.
func (f fields) shares(c *Config, decoded []decodedRule) {
	replicas, written := f.get("replicas")
	local := false
	for i := range decoded {
		r := &decoded[i]
		if r.rule.Action != rules.Limit || r.rule.OnStoreError != rules.Local {
			continue
		}
		first := !local
		local = true
		if c.Store.Redis == nil { // nothing can fail
			continue
		}
		if first && !written {
			f.unshared(r)
		}
		r.share(r.rule.Limit, r.rule.Cost, r.rule.CostFrom, c.Replicas)
		for k, override := range r.overrides {
			o := &r.rule.Overrides[k]
			override.share(o.Limit, o.Cost, o.CostFrom, c.Replicas)
		}
	}
	if c.Replicas > 1 && !local {
		replicas.warn("%d changes nothing, wanted on_store_error: local in a limit rule or at the top of the file", c.Replicas)
	}
}

// unshared warns, where the rule's local is written, that nothing says how many daemons share its limit.
func (f fields) unshared(r *decodedRule) {
	at, ok := r.get("on_store_error")
	if !ok {
		at, _ = f.get("on_store_error")
	}
	at.warn("each daemon gives out the whole limit while Redis is away, wanted replicas at the top of the file: how many share it")
}

// share warns of a daemon's share in which no request has room, or which adds up to more than the limit, at the numbers that
// are written here.
func (f fields) share(l limiter.Limit, cost uint32, from *rules.CostFrom, replicas uint32) {
	if from != nil {
		cost = from.Min
	}
	share := l.Share(replicas)
	if written := f.replaces(); written != nil && share.NeverPasses(cost) && !l.NeverPasses(cost) {
		written[0].warn("every request costs %d or more, which is above the %d that each of %d replicas may give out, so all are refused while "+
			"Redis is away, wanted a larger limit or another on_store_error", cost, share.Capacity(), replicas)
	} else if at, ok := f.get("limit"); ok && 0 < l.Quota && l.Quota < replicas {
		at.warn("%d replicas give out one each while Redis is away, more than the limit together, wanted a limit of at least that", replicas)
	}
}
