package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// scope is the match of a rule in a form that can be compared with another.
type scope struct {
	hosts, methods []string   // hosts in lower case
	paths          [][]string // the segments of a canonical path; or one text with a ~ for a regular expression
	headers        []rules.HeaderCondition
	clientIPs      []netip.Prefix
}

func scopeOf(m *rules.Match) scope {
	s := scope{hosts: texts(m.Hosts), methods: m.Methods, headers: m.Headers, clientIPs: m.ClientIPs}
	for i, host := range s.hosts {
		s.hosts[i] = strings.ToLower(host)
	}
	for _, path := range m.Paths {
		text := path.String()
		if !strings.HasPrefix(text, "~") {
			text, _ = rules.CanonicalPath(text)
			s.paths = append(s.paths, strings.Split(text, "/"))
			continue
		}
		s.paths = append(s.paths, []string{text})
	}
	return s
}

// String is the same for scopes that differ in the order of their entries alone.
func (s *scope) String() string {
	sorted := func(list []string) []string {
		list = slices.Clone(list)
		slices.Sort(list)
		return slices.Compact(list)
	}
	var paths []string
	for _, segments := range s.paths {
		paths = append(paths, strings.Join(segments, "/"))
	}
	text := fmt.Sprintf("%q %q %q %q", sorted(s.hosts), sorted(s.methods), sorted(paths), sorted(texts(s.clientIPs)))
	for _, h := range s.headers {
		text += fmt.Sprintf(" %q %d %q", h.Name, h.Presence, sorted(h.Values))
	}
	return text
}

// covers reports whether every request in b is one in s. It overlooks that with most regular expressions, and takes no
// account of clients that repeat a header.
func (s *scope) covers(b *scope) bool {
	return coversAll(s.hosts, b.hosts, coversHost) &&
		coversAll(s.methods, b.methods, func(a, b string) bool { return a == b }) &&
		coversAll(s.paths, b.paths, coversPath) &&
		coversAll(s.clientIPs, b.clientIPs, func(a, b netip.Prefix) bool { return a.Bits() <= b.Bits() && a.Contains(b.Addr()) }) &&
		!slices.ContainsFunc(s.headers, func(h rules.HeaderCondition) bool {
			return !slices.ContainsFunc(b.headers, func(other rules.HeaderCondition) bool { return coversHeader(h, other) })
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

func coversPath(a, b []string) bool {
	if isRegexp := len(a) == 1 || len(b) == 1; isRegexp {
		return slices.Equal(a, b) || slices.Equal(a, []string{"", "**"})
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

func coversHeader(a, b rules.HeaderCondition) bool {
	switch {
	case a.Name != b.Name:
		return false
	case a.Presence == rules.Present:
		return b.Presence != rules.Absent
	case a.Presence == rules.Absent:
		return b.Presence == rules.Absent
	}
	return b.Presence == rules.Values && coversAll(a.Values, b.Values, func(a, b string) bool { return a == b })
}

// coverers are rules by what every path in them begins with, so that of many rules only few need a closer look.
type coverers map[string][]*subject

func (c coverers) add(r *subject) {
	if len(r.scope.paths) == 0 {
		c[""] = append(c[""], r)
	}
	for _, segments := range r.scope.paths {
		literal := slices.IndexFunc(segments, func(segment string) bool { return segment == "*" || segment == "**" })
		if literal < 0 {
			literal = len(segments)
		}
		start := strings.Join(segments[:literal], "/")
		c[start] = append(c[start], r)
	}
}

// first returns the rule, the first in the file, that covers all of r; nil when none does.
func (c coverers) first(r *subject) (found *subject) {
	starts := []string{""}
	if len(r.scope.paths) > 0 {
		path := r.scope.paths[0]
		for i := range path {
			starts = append(starts, strings.Join(path[:i+1], "/"))
		}
	}
	for _, start := range starts {
		for _, by := range c[start] {
			if by != r && (found == nil || by.place < found.place) && by.scope.covers(&r.scope) {
				found = by
			}
		}
	}
	return found
}

// inventable reports whether a client can send any number of values of an attribute within the scope.
func (s *scope) inventable(attribute string) bool {
	header, isHeader := strings.CutPrefix(attribute, "header.")
	switch {
	case isHeader:
		return !slices.ContainsFunc(s.headers, func(c rules.HeaderCondition) bool { return c.Name == header && c.Presence == rules.Values })
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
