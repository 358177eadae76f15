package config

import (
	"net/netip"
	"slices"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

func (c *Config) clustered() bool {
	return c.Store.Redis != nil && c.Store.Redis.Mode == limiter.ModeCluster
}

// RuleSet prepares the rules for use with the store that the configuration names.
func (c *Config) RuleSet() *rules.Set {
	if c.clustered() {
		return rules.NewSet(c.Rules, c.ClientIP, rules.WithTags())
	}
	return rules.NewSet(c.Rules, c.ClientIP)
}

// SlotGroup is limit rules whose buckets are laid into the slots of a Redis Cluster in one way.
type SlotGroup struct {
	// By is the attribute by whose value the slot is chosen, so that one request finds its buckets of all the rules in one
	// slot; "" if each bucket has a slot of its own.
	By string
	// Rules are names, in the order of the file; there is at least one.
	Rules []string
}

// mostPairs is some tenths of a second of comparing rules with each other.
const mostPairs = 1_000_000

// SlotGroups lists the rules that can apply to one request together with a rule that may have another slot: such a request
// costs Redis more trips. It is nil if there are none, and if the store is no cluster. Among very many rules it may list some
// that never apply to one request.
func (c *Config) SlotGroups() []SlotGroup {
	if !c.clustered() {
		return nil
	}
	var placed []placedRule
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Action == rules.Limit {
			p := placedRule{name: r.Name, scope: scopeOf(r)}
			if by, ok := r.TagAttribute(); ok {
				p.by = by.String()
			}
			placed = append(placed, p)
		}
	}
	var groups []SlotGroup
	pairs := mostPairs
	for i := range placed {
		if !meetsAnother(placed, i, &pairs) {
			continue
		}
		by := placed[i].by
		at := slices.IndexFunc(groups, func(g SlotGroup) bool { return g.By == by })
		if at < 0 {
			at, groups = len(groups), append(groups, SlotGroup{By: by})
		}
		groups[at].Rules = append(groups[at].Rules, placed[i].name)
	}
	return groups
}

// placedRule is a limit rule and the attribute that chooses the slot of its buckets; "" if each has its own.
type placedRule struct {
	name, by string
	scope    scope
}

// meetsAnother reports whether a request can be in the scope of the i-th rule and in that of one with another slot. It says so,
// too, when no more pairs may be compared.
func meetsAnother(placed []placedRule, i int, pairs *int) bool {
	for j := range placed {
		if j == i || placed[j].by == placed[i].by && placed[i].by != "" {
			continue
		}
		if *pairs--; *pairs < 0 || placed[i].scope.meets(&placed[j].scope) {
			return true
		}
	}
	return false
}

// meets reports whether a request may be in both scopes; it overlooks some pairs in which none can be.
func (s *scope) meets(b *scope) bool {
	return meetAny(s.hosts, b.hosts, func(a, b string) bool { return coversHost(a, b) || coversHost(b, a) }) &&
		meetAny(s.methods, b.methods, func(a, b string) bool { return a == b }) &&
		meetAny(s.paths, b.paths, meetPaths) &&
		meetAny(s.clientIPs, b.clientIPs, netip.Prefix.Overlaps) &&
		!slices.ContainsFunc(s.values, func(c valueCondition) bool {
			return slices.ContainsFunc(b.values, func(other valueCondition) bool { return c.excludes(&other) })
		})
}

// meetAny reports whether an entry of a meets one of b. An empty list is no condition.
func meetAny[T any](a, b []T, meet func(a, b T) bool) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(x T) bool {
		return slices.ContainsFunc(b, func(y T) bool { return meet(x, y) })
	})
}

// meetPaths takes a regular expression to meet every path.
func meetPaths(a, b []string) bool {
	if isRegexp := len(a) == 1 || len(b) == 1; isRegexp {
		return true
	}
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == "**" || b[i] == "**":
			return true
		case a[i] != b[i] && a[i] != "*" && b[i] != "*":
			return false
		}
	}
	longer := a
	if len(b) > len(a) {
		longer = b
	}
	return len(a) == len(b) || longer[min(len(a), len(b))] == "**"
}

// excludes reports whether no request meets both conditions.
func (c *valueCondition) excludes(b *valueCondition) bool {
	if c.kind != b.kind || c.name != b.name {
		return false
	}
	if c.presence == rules.Absent || b.presence == rules.Absent {
		return c.presence != b.presence
	}
	return c.single && !meetAny(c.values, b.values, func(a, b string) bool { return a == b })
}
