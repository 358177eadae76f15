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
	m.Headers = f.headerConditions()
	m.Query = f.queryConditions()
	m.Extensions = f.extensionConditions()
	m.Metadata = f.metadataConditions()
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

// named reads a mapping of names to what each must be, in the order of the names: one order for all ways of writing them.
// what is one of those that are named.
func named[T any](f fields, key, what string, read func(name, v value) (T, bool)) []T {
	f, ok := f.section(key, namesSection)
	if !ok {
		return nil
	}
	if len(f.node.Content) == 0 {
		f.fail("has no %s, wanted at least one, or %s left out", what, key)
	}
	var conditions []T
	for _, name := range slices.Sorted(slices.Values(f.order)) {
		if c, ok := read(f.keys[name], f.entries[name]); ok {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// headerConditions reads match.headers.
func (f fields) headerConditions() []rules.HeaderCondition {
	lines := map[string]int{}
	conditions := named(f, "headers", "header", func(at, v value) (c rules.HeaderCondition, ok bool) {
		if condition, ok := conditionsFor[strings.ToLower(at.node.Value)]; ok {
			at.fail("is no header for a rule, wanted match.%s", condition)
			return c, false
		}
		if c.Name, ok = at.headerName(); !ok {
			return c, false
		}
		if first, twice := lines[c.Name]; twice {
			at.fail("the header is here twice, first on line %d, wanted it once", first)
			return c, false
		}
		lines[c.Name] = at.node.Line
		c.Presence, c.Values = v.presence()
		return c, true
	})
	slices.SortFunc(conditions, func(a, b rules.HeaderCondition) int { return cmp.Compare(a.Name, b.Name) })
	return conditions
}

func (f fields) queryConditions() []rules.QueryCondition {
	return named(f, "query", "parameter", func(at, v value) (c rules.QueryCondition, ok bool) {
		c.Name = at.node.Value
		c.Presence, c.Values = v.presence()
		return c, at.isNamed("parameter")
	})
}

func (f fields) extensionConditions() []rules.ExtensionCondition {
	return named(f, "extensions", "extension", func(at, v value) (c rules.ExtensionCondition, ok bool) {
		return rules.ExtensionCondition{Name: at.node.Value, Values: v.values(wantValues)}, at.isNamed("extension")
	})
}

func (f fields) metadataConditions() []rules.MetadataCondition {
	return named(f, "metadata", "place", func(at, v value) (c rules.MetadataCondition, ok bool) {
		place, err := rules.ParseMetadataPath(at.node.Value)
		if err != nil {
			at.fail("%s", oneLine(err))
		}
		return rules.MetadataCondition{At: place, Values: v.values(wantValues)}, err == nil
	})
}

// isNamed notes an empty name.
func (v value) isNamed(what string) bool {
	if v.node.Value == "" {
		v.fail("is no name, wanted that of the %s", what)
		return false
	}
	return true
}

const wantValues = "a value or a list of values"

// presence reads what a header or parameter must be: present, absent, one value or a list of values.
func (v value) presence() (rules.Presence, []string) {
	values := v.values("present, absent, " + wantValues)
	if len(values) == 1 && !v.isList() {
		switch values[0] {
		case "present":
			return rules.Present, nil
		case "absent":
			return rules.Absent, nil
		}
	}
	return rules.Values, values
}

// values reads one text or a list of at least one.
func (v value) values(want string) (values []string) {
	entries := []value{v}
	if v.isList() {
		entries, _ = v.list(1, want)
	}
	for _, entry := range entries {
		if text, ok := entry.text(want); ok {
			values = append(values, text)
		}
	}
	return values
}
