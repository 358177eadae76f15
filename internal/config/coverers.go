package config

import (
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// coverers are rules in an index that finds, of very many, the few that may cover another rule. A rule covers another only
// if each of its conditions covers the other's like condition, and a condition covers another only if each entry of that
// is covered by one of its own. So it is enough to file a rule under one of its conditions, each entry of that under one of
// its marks, and to look for it by any one entry of each condition of the other.
type coverers struct {
	rules map[mark][]*subject // each list in the order of the file
	// effort is how much comparing is left until first gives up.
	effort int
}

// mostEffort is some tenths of a second of comparing. Only many thousands of rules that no single condition tells apart may
// take more.
const mostEffort = 30_000_000

// mark is a trait by which the index finds rules. The zero value is that of the rules without conditions.
type mark struct {
	kind   string
	name   string // of a header or the like
	place  int    // of a segment in its path; what a header or the like must be
	text   string
	prefix netip.Prefix
}

// condition is one condition of a rule: the marks of each of its entries.
type condition [][]mark

// direction is what the marks of an entry are for.
type direction bool

const (
	narrow direction = false // to file it under any one of them: whatever it covers has all of them among its wide marks
	wide   direction = true  // to find all that cover it
)

func newCoverers(candidates []*subject, effort int) *coverers {
	c := &coverers{rules: map[mark][]*subject{}, effort: effort}
	type match struct {
		text       string
		everyValue bool
	}
	seen := map[match]bool{}
	frequency := map[mark]int{}
	var unlike []*subject // a rule whose match an earlier one has is never the first to cover anything
	for _, r := range candidates {
		m := match{r.match, r.scope.everyValue}
		if seen[m] {
			continue
		}
		seen[m] = true
		unlike = append(unlike, r)
		for _, condition := range r.scope.conditions(narrow) {
			for _, marks := range condition {
				for _, m := range marks {
					frequency[m]++
				}
			}
		}
	}
	for _, r := range unlike {
		c.add(r, frequency)
	}
	return c
}

// add files a rule under the condition with the rarest entry, by the marks' frequency: whatever shares all of the condition
// is looked up by the rarest entry.
func (c *coverers) add(r *subject, frequency map[mark]int) {
	rarest := []mark{{}}
	least, most := 0, 0
	for _, condition := range r.scope.conditions(narrow) {
		marks := make([]mark, len(condition))
		low, high := math.MaxInt, 0
		for i, entry := range condition {
			marks[i] = slices.MinFunc(entry, func(a, b mark) int { return frequency[a] - frequency[b] })
			low, high = min(low, frequency[marks[i]]), max(high, frequency[marks[i]])
		}
		if least == 0 || low < least || low == least && high < most {
			rarest, least, most = marks, low, high
		}
	}
	for _, m := range rarest {
		if list := c.rules[m]; len(list) == 0 || list[len(list)-1] != r {
			c.rules[m] = append(list, r)
		}
	}
}

// first returns the first rule of those before a place in the file that covers all of the scope; nil when none does. It is
// not sure when there was too much to compare.
func (c *coverers) first(s *scope, before int) (found *subject, sure bool) {
	for _, list := range c.candidates(s) {
		for _, by := range list {
			if by.place >= before {
				break
			}
			if c.effort -= by.scope.size * s.size; c.effort < 0 {
				return nil, false
			}
			if by.scope.covers(s) {
				found, before = by, by.place
				break
			}
		}
	}
	return found, true
}

// candidates returns lists with all the rules that may cover the scope: of each condition those that one entry leads to.
func (c *coverers) candidates(s *scope) [][]*subject {
	lists := [][]*subject{c.rules[mark{}]}
	for _, condition := range s.conditions(wide) {
		var fewest [][]*subject
		least := -1
		for _, marks := range condition[:min(len(condition), 8)] {
			var found [][]*subject
			total := 0
			for _, m := range marks {
				if list := c.rules[m]; list != nil {
					found, total = append(found, list), total+len(list)
				}
			}
			if least < 0 || total < least {
				fewest, least = found, total
			}
		}
		lists = append(lists, fewest...)
	}
	return lists
}

// conditions returns the conditions of the scope, each with at least one entry.
func (s *scope) conditions(d direction) []condition {
	var list []condition
	add := func(c condition) {
		if len(c) > 0 {
			list = append(list, c)
		}
	}
	add(marked(s.hosts, d.host))
	add(marked(s.methods, func(method string) []mark { return []mark{{kind: "method", text: method}} }))
	add(marked(s.paths, d.path))
	add(marked(s.clientIPs, d.prefix))
	for _, c := range s.values {
		add(d.values(c))
	}
	return list
}

func marked[T any](entries []T, marks func(T) []mark) condition {
	c := make(condition, len(entries))
	for i, entry := range entries {
		c[i] = marks(entry)
	}
	return c
}

func (d direction) host(host string) []mark {
	marks := []mark{{kind: "host", text: host}}
	for i := 0; d == wide && i < len(host); i++ {
		if host[i] == '.' {
			marks = append(marks, mark{kind: "host", text: "*" + host[i:]})
		}
	}
	return marks
}

// path marks the literal beginning of a path and the literal segments after it.
func (d direction) path(segments []string) []mark {
	isWild := func(segment string) bool { return segment == "*" || segment == "**" }
	literal := slices.IndexFunc(segments, isWild)
	if literal < 0 {
		literal = len(segments)
	}
	beginning := func(n int) mark { return mark{kind: "path", text: strings.Join(segments[:n], "/")} }
	marks := []mark{beginning(literal)}
	if d == wide {
		for n := 1; n < literal; n++ {
			marks = append(marks, beginning(n))
		}
		literal = 1
	}
	for i, segment := range segments[literal:] {
		if !isWild(segment) {
			marks = append(marks, mark{kind: "segment", place: literal + i, text: segment})
		}
	}
	return marks
}

// prefix marks the whole bytes of a prefix, so that there are few to look for.
func (d direction) prefix(p netip.Prefix) []mark {
	var marks []mark
	bits := p.Bits() &^ 7
	for {
		bytes, _ := p.Addr().Prefix(bits) // its length is within bounds
		marks = append(marks, mark{kind: "client", prefix: bytes})
		if bits -= 8; d == narrow || bits < 0 {
			return marks
		}
	}
}

func (d direction) values(c valueCondition) condition {
	as := func(presence rules.Presence, value string) mark {
		return mark{kind: c.kind, name: c.name, place: int(presence), text: value}
	}
	if c.presence != rules.Values {
		return condition{{as(c.presence, "")}}
	}
	return marked(c.values, func(value string) []mark {
		marks := []mark{as(rules.Values, value)}
		if d == wide {
			marks = append(marks, as(rules.Present, ""))
		}
		return marks
	})
}
