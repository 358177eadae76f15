package config

import (
	"math"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// cost reads a cost under an algorithm, if it is written: a number, or an attribute with its bounds.
func (f fields) cost(a limiter.Algorithm, cost *uint32, from **rules.CostFrom) {
	v, ok := f.get("cost")
	if !ok {
		return
	}
	most := uint32(math.MaxUint32)
	if a == limiter.SlidingLog {
		most = limiter.MaxSlidingLogCost
	}
	if v.isMapping() {
		*cost, *from = v.costFrom(most)
		return
	}
	*from = nil
	f.units("cost", most, cost)
}

// units sets units to the value of a key, if it is written.
func (f fields) units(key string, most uint32, units *uint32) {
	if v, ok := f.get(key); ok {
		n, _ := v.number(0, uint64(most))
		*units = uint32(n)
	}
}

// costFrom reads the attribute that states a cost, what a request costs that does not, and the bounds.
func (v value) costFrom(most uint32) (otherwise uint32, from *rules.CostFrom) {
	f, ok := v.fields(costSection)
	if !ok {
		return 0, nil
	}
	otherwise, from = 1, &rules.CostFrom{Min: 1, Max: most}
	if at, ok := f.require("from", "an attribute like header.x-cost"); ok {
		from.Attribute, _ = at.attribute()
	}
	before := len(v.d.problems)
	f.units("default", most, &otherwise)
	f.units("min", most, &from.Min)
	f.units("max", most, &from.Max)
	if bad := len(v.d.problems) > before; !bad && (from.Min > otherwise || otherwise > from.Max) {
		v.fail("has min %d, default %d and max %d, wanted min ≤ default ≤ max", from.Min, otherwise, from.Max)
	}
	return otherwise, from
}

// overrides reads what replaces the numbers of a rule; burst is what the rule's own is written as. It returns the fields of
// each override.
func (f fields) overrides(r *rules.Rule, burst uint32) (written []fields) {
	v, ok := f.get("overrides")
	if !ok {
		return nil
	}
	entries, _ := v.list(1, "a list of at least one override, each beginning with - match:")
	for _, entry := range entries {
		if f, ok := entry.fields(overrideSection); ok {
			r.Overrides = append(r.Overrides, f.override(r, burst))
			written = append(written, f)
		}
	}
	return written
}

func (f fields) override(r *rules.Rule, burst uint32) rules.Override {
	o := rules.Override{Limit: r.Limit, Cost: r.Cost, CostFrom: r.CostFrom}
	if match, ok := f.require("match", "which requests it is for"); ok {
		if match, ok := match.fields(matchSection); ok {
			o.Match = match.match()
		}
	}
	if len(f.entries) > 0 && f.replaces() == nil && len(f.meant) == 0 {
		f.fail("replaces nothing, wanted limit, burst or cost")
	}
	if v, ok := f.get("limit"); ok && v.quota(&o.Limit) && r.Limit.Window != 0 && formatWindow(o.Limit) != formatWindow(r.Limit) {
		v.fail("%s has another window than the rule, wanted %d/%s", quote(v.node.Value), o.Limit.Quota, formatWindow(r.Limit))
	}
	f.burst(&o.Limit, burst)
	f.cost(r.Limit.Algorithm, &o.Cost, &o.CostFrom)
	return o
}

// replaces returns the values of an override that replace the rule's; nil when there are none.
func (f fields) replaces() (values []value) {
	for _, key := range []string{"cost", "limit", "burst"} {
		if v, ok := f.get(key); ok {
			values = append(values, v)
		}
	}
	return values
}
