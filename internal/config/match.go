package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

var methodToken = regexp.MustCompile("^[A-Z0-9!#$%&'*+.^_`|~-]+$")

// conditionsFor are the conditions that take the place of HTTP/2's pseudo-headers, and of host, which Envoy makes one.
var conditionsFor = map[string]string{":authority": "hosts", ":method": "methods", ":path": "paths", "host": "hosts"}

// match reads the conditions of a rule.
func (f fields) match() (m rules.Match) {
	m.Hosts = each(f, "hosts", "a host like api.example.com or *.example.org", rules.ParseHost)
	m.Paths = each(f, "paths", "a path like /api/* or /static/**", rules.ParsePath)
	m.ClientIPs = each(f, "client_ips", "an address or a CIDR range like 10.0.0.0/8", rules.ParsePrefix)
	m.Methods = each(f, "methods", "a method like GET", parseMethod)
	if headers, ok := f.section("headers", matchHeaderSection); ok {
		m.Headers = headers.headerConditions()
	}
	return m
}

// each reads a list of which each entry is a text; it has at least one.
func each[T any](f fields, key, want string, parse func(string) (T, error)) []T {
	v, ok := f.get(key)
	if !ok {
		return nil
	}
	entries, _ := v.list(1, "a list of at least one entry, each "+want)
	var parsed []T
	for _, entry := range entries {
		text, ok := entry.text(want)
		if !ok {
			continue
		}
		t, err := parse(text)
		if err != nil {
			entry.fail("%s", oneLine(err))
			continue
		}
		parsed = append(parsed, t)
	}
	return parsed
}

func parseMethod(text string) (string, error) {
	upper := strings.ToUpper(text)
	switch {
	case text == "*":
		return "", errors.New("\"*\" is no method, wanted methods left out, which means all of them")
	case !methodToken.MatchString(upper):
		return "", fmt.Errorf("%s is no method, wanted one like GET", quote(text))
	case upper != text:
		return "", fmt.Errorf("%s is not in upper case, wanted it as it goes over the wire%s", quote(text), didYouMean(upper))
	}
	return text, nil
}

// headerConditions reads match.headers, in the order of the names: one order for all ways of writing them.
func (f fields) headerConditions() []rules.HeaderCondition {
	if len(f.order) == 0 && len(f.node.Content) == 0 {
		f.fail("has no header, wanted at least one, or headers left out")
	}
	var conditions []rules.HeaderCondition
	lines := map[string]int{}
	for _, key := range f.order {
		at := f.keys[key]
		if condition, ok := conditionsFor[strings.ToLower(key)]; ok {
			at.fail("is no header for a rule, wanted match.%s", condition)
			continue
		}
		name, ok := at.headerName()
		if !ok {
			continue
		}
		if first, twice := lines[name]; twice {
			at.fail("the header is here twice, first on line %d, wanted it once", first)
			continue
		}
		lines[name] = at.node.Line
		conditions = append(conditions, f.entries[key].headerCondition(name))
	}
	slices.SortFunc(conditions, func(a, b rules.HeaderCondition) int { return cmp.Compare(a.Name, b.Name) })
	return conditions
}

// headerCondition reads what a header must be: present, absent, one value or a list of values.
func (v value) headerCondition(name string) rules.HeaderCondition {
	const want = "present, absent, a value or a list of values"
	c := rules.HeaderCondition{Name: name}
	entries := []value{v}
	if v.isList() {
		entries, _ = v.list(1, want)
	}
	for _, entry := range entries {
		text, ok := entry.text(want)
		switch {
		case !ok:
		case !v.isList() && text == "present":
			c.Presence = rules.Present
		case !v.isList() && text == "absent":
			c.Presence = rules.Absent
		default:
			c.Values = append(c.Values, text)
		}
	}
	return c
}
