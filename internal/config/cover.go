package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// scope is the match of a rule in a form that can be compared with another. What every HTTP request meets, the host `*` and
// the path `/**`, is left out of it.
type scope struct {
	http           bool // only HTTP requests match
	hosts, methods []string
	paths          [][]string // the segments of a canonical path; or one text with a ~ for a regular expression
	clientIPs      []netip.Prefix
	values         []valueCondition
	// everyValue says that of a header or parameter with several values all must be listed, as the action allow has it;
	// otherwise one is enough.
	everyValue bool
	size       int // of all lists together, and one more
}

// valueCondition is a condition on the values of something that has a name.
type valueCondition struct {
	kind     string // the key of the match that it stands under
	name     string
	presence rules.Presence
	values   []string
	single   bool // there is never more than one value
}

func valueConditions(m *rules.Match) (list []valueCondition) {
	for _, c := range m.Headers {
		list = append(list, valueCondition{"headers", c.Name, c.Presence, c.Values, false})
	}
	for _, c := range m.Query {
		list = append(list, valueCondition{"query", c.Name, c.Presence, c.Values, false})
	}
	for _, c := range m.Extensions {
		list = append(list, valueCondition{"extensions", c.Name, rules.Values, c.Values, true})
	}
	for _, c := range m.Metadata {
		list = append(list, valueCondition{"metadata", c.At.String(), rules.Values, c.Values, true})
	}
	return list
}

func scopeOf(r *rules.Rule) scope {
	m := &r.Match
	s := scope{
		http:    m.OnlyHTTP(),
		hosts:   hostsOf(m),
		methods: m.Methods, paths: pathsOf(m), clientIPs: m.ClientIPs, values: valueConditions(m),
		everyValue: r.Action == rules.Allow,
	}
	if slices.Contains(s.hosts, "*") {
		s.hosts = nil
	}
	if slices.ContainsFunc(s.paths, func(path []string) bool { return slices.Equal(path, []string{"", "**"}) }) {
		s.paths = nil
	}
	s.size = 1 + len(s.hosts) + len(s.methods) + len(s.paths) + len(s.clientIPs) + len(s.values)
	for _, c := range s.values {
		s.size += len(c.values)
	}
	return s
}

// hostsOf returns the hosts in lower case.
func hostsOf(m *rules.Match) []string {
	hosts := texts(m.Hosts)
	for i, host := range hosts {
		hosts[i] = strings.ToLower(host)
	}
	return hosts
}

func pathsOf(m *rules.Match) (paths [][]string) {
	for _, path := range m.Paths {
		text := path.String()
		if strings.HasPrefix(text, "~") {
			paths = append(paths, []string{text})
			continue
		}
		text, _ = rules.CanonicalPath(text)
		paths = append(paths, strings.Split(text, "/"))
	}
	return paths
}

// matchText returns a text that is the same for matches that differ in the order of their entries alone.
func matchText(m *rules.Match) string {
	var paths []string
	for _, segments := range pathsOf(m) {
		paths = append(paths, strings.Join(segments, "/"))
	}
	text := fmt.Sprintf("%q %q %q %q", sorted(hostsOf(m)), sorted(m.Methods), sorted(paths), sorted(texts(m.ClientIPs)))
	for _, c := range valueConditions(m) {
		text += fmt.Sprintf(" %s %q %d %q", c.kind, c.name, c.presence, sorted(c.values))
	}
	return text
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// covers reports whether every request in b is one in s; it overlooks that with most regular expressions.
func (s *scope) covers(b *scope) bool {
	return (b.http || !s.http) &&
		coversAll(s.hosts, b.hosts, coversHost) &&
		coversAll(s.methods, b.methods, func(a, b string) bool { return a == b }) &&
		coversAll(s.paths, b.paths, coversPath) &&
		coversAll(s.clientIPs, b.clientIPs, coversPrefix) &&
		!slices.ContainsFunc(s.values, func(c valueCondition) bool {
			return !slices.ContainsFunc(b.values, func(other valueCondition) bool {
				return c.covers(&other, c.single || b.everyValue || !s.everyValue)
			})
		})
}

// coversAll reports whether each entry of b has one of a that covers it. An empty list is no condition.
func coversAll[T any](a, b []T, covers func(a, b T) bool) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == 0
	}
	return !slices.ContainsFunc(b, func(narrow T) bool {
		return !slices.ContainsFunc(a, func(wide T) bool { return covers(wide, narrow) })
	})
}

func coversHost(a, b string) bool {
	below, isWild := strings.CutPrefix(a, "*")
	return a == b || isWild && strings.HasSuffix(b, below)
}

func coversPrefix(a, b netip.Prefix) bool { return a.Bits() <= b.Bits() && a.Contains(b.Addr()) }

func coversPath(a, b []string) bool {
	if isRegexp := len(a) == 1 || len(b) == 1; isRegexp {
		return slices.Equal(a, b)
	}
	for i, segment := range a {
		switch {
		case segment == "**":
			return true
		case i >= len(b) || b[i] == "**":
			return false
		case segment != b[i] && (segment != "*" || b[i] == ""):
			return false
		}
	}
	return len(a) == len(b)
}

// covers compares conditions on values; values are compared only if c asks no more of what is repeated than b.
func (c *valueCondition) covers(b *valueCondition, values bool) bool {
	switch {
	case c.kind != b.kind || c.name != b.name:
		return false
	case c.presence == rules.Present:
		return b.presence != rules.Absent
	case c.presence == rules.Absent:
		return b.presence == rules.Absent
	}
	return values && b.presence == rules.Values && coversAll(c.values, b.values, func(a, b string) bool { return a == b })
}

// inventable reports whether a client can send any number of values of an attribute within the scope. What a certificate,
// Envoy's configuration or another filter says, no client can invent.
func (s *scope) inventable(attribute string) bool {
	listed := func(kind, name string) bool {
		return slices.ContainsFunc(s.values, func(c valueCondition) bool {
			return c.kind == kind && c.name == name && c.presence == rules.Values
		})
	}
	word, name, _ := strings.Cut(attribute, ".")
	switch {
	case word == "header":
		return !listed("headers", name)
	case word == "query":
		return !listed("query", name)
	case word == "cookie":
		return true
	case attribute == "method":
		return len(s.methods) == 0
	case attribute == "host":
		return len(s.hosts) == 0 || slices.ContainsFunc(s.hosts, func(host string) bool { return strings.HasPrefix(host, "*") })
	case attribute == "path":
		return len(s.paths) == 0 || slices.ContainsFunc(s.paths, func(segments []string) bool {
			return len(segments) == 1 || slices.Contains(segments, "*") || slices.Contains(segments, "**")
		})
	}
	return false
}
