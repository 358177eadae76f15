package rules

import "testing"

func TestEverySpellingOfAHostHasOneCanonicalForm(t *testing.T) { // ENVOY.md §1.1
	for raw, want := range map[string]string{
		"api.example.com":        "api.example.com",
		"A.Example.:8443":        "a.example",
		"a.example.":             "a.example",
		"a.example:":             "a.example",
		"under_score-1.example":  "under_score-1.example",
		"192.0.2.1:80":           "192.0.2.1",
		"[2001:DB8:0::1]:443":    "2001:db8::1",
		"[::1]":                  "::1",
		"2001:db8::1":            "2001:db8::1",
		"localhost":              "localhost",
		"xn--bcher-kva.example.": "xn--bcher-kva.example",
		// No names, but Envoy routes them by its domains.
		"x!y.Example": "x!y.example", "x~y.example": "x~y.example", "u@a.example": "u@a.example", "x%41.example": "x%41.example",
		"a..example": "a..example", ".example": ".example", "a..": "a", "*.a": "*.a", "a.example:80x": "a.example", "a:80:80": "a",
		"[::1]:x": "::1",
	} {
		got, ok := CanonicalHost(raw)
		if got != want || !ok {
			t.Errorf("CanonicalHost(%q) = %q, %v, want %q", raw, got, ok, want)
		}
		if again, ok := CanonicalHost(got); again != got || !ok {
			t.Errorf("the canonical host %q became %q, %v", got, again, ok)
		}
	}
	for _, raw := range []string{
		"", ".", ":80", "a.example,b", "A.Example:8443,b", "a b", "a/b", "a\\b", "a?b", "a#b", "bücher", "[::1", "[::1]x", "[a]",
		"[192.0.2.1]", "[]", "[fe80::1%eth0]", "a\x00", "a\x7f",
	} {
		if got, ok := CanonicalHost(raw); ok || got != "" {
			t.Errorf("CanonicalHost(%q) = %q, %v, want it unparsable", raw, got, ok)
		}
	}
}

func TestHostPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern         string
		matches, others []string
	}{
		{"api.example.com", []string{"api.example.com", "API.Example.Com.:80"}, []string{"example.com", "x.api.example.com", "api.example.com,b", ""}},
		{"API.example.com.", []string{"api.example.com"}, nil},
		{"*.example.org", []string{"a.example.org", "a.b.example.org:1", "x!y.example.org", "a..example.org", "a.example.org:80x"}, []string{"example.org", "aexample.org", "a.example.org.evil", "a,b.example.org"}},
		{"*", []string{"a", "", "a,b", "::1"}, nil},
		{"[2001:db8::1]", []string{"[2001:DB8::1]:443"}, []string{"2001:db8::2"}},
	} {
		pattern, err := ParseHost(c.pattern)
		if err != nil {
			t.Errorf("ParseHost(%q): %v", c.pattern, err)
			continue
		}
		if pattern.String() != c.pattern {
			t.Errorf("%q is shown as %q", c.pattern, pattern)
		}
		for _, raw := range c.matches {
			if !pattern.matches(CanonicalHost(raw)) {
				t.Errorf("%q does not match %q", c.pattern, raw)
			}
		}
		for _, raw := range c.others {
			if pattern.matches(CanonicalHost(raw)) {
				t.Errorf("%q matches %q", c.pattern, raw)
			}
		}
	}
	for _, text := range []string{"", "a.*", "**", "*a.example", "*.*.example", "*.", "a.example:80", "a b", "a,b", "https://a"} {
		if _, err := ParseHost(text); err == nil {
			t.Errorf("ParseHost(%q) is accepted", text)
		}
	}
}
