package rules

import (
	"strings"
	"testing"
)

func TestPathPatternsMatchWholePathsSegmentBySegment(t *testing.T) { // D58
	for _, c := range []struct {
		pattern string
		matches []string
		others  []string
	}{
		{"/api", []string{"/api", "/api/", "/api?x"}, []string{"/", "/apix", "/api/x", "/API"}},
		{"/api/*", []string{"/api/x", "/api/x/", "/api/*"}, []string{"/api", "/api/", "/api/x/y", "/apix", "/apix/y"}},
		{"/users/*/items", []string{"/users/7/items"}, []string{"/users/items", "/users//items", "/users/7/8/items", "/users/7/items/9", "/users/7"}},
		{"/static/**", []string{"/static", "/static/", "/static/a", "/static/a/b"}, []string{"/", "/staticx", "/x/static"}},
		{"/users/*/**", []string{"/users/7", "/users/7/items/9"}, []string{"/users", "/users/"}},
		{"/", []string{"/", "//", "/x/.."}, []string{"/a"}},
		{"/*", []string{"/a"}, []string{"/", "/a/b"}},
		{"/*/**", []string{"/a", "/a/b/c"}, []string{"/", "/%zz", "*"}},
		{"/**", []string{"/", "/a", "/a/b", "", "*", "/%zz", "a"}, nil},
		{"~^/v[0-9]+/", []string{"/v1/a", "//v22/%61"}, []string{"/v1", "/a/v1/b", "*"}},
		{"~items", []string{"/users/7/items", "/itemsx", "/%69tems"}, []string{"/ITEMS", "/a?items", "items", "/items%zz"}},
		{"~.*", []string{"/"}, []string{"", "*", "/%zz"}},
		{"//a/./%62/", []string{"/a/b"}, []string{"/a", "/a/%62/c"}},
		{"/a%2fb", []string{"/a%2Fb"}, []string{"/a/b"}},
		{"/café", []string{"/caf%c3%a9", "/café"}, []string{"/cafe"}},
	} {
		pattern, err := ParsePath(c.pattern)
		if err != nil {
			t.Errorf("ParsePath(%q): %v", c.pattern, err)
			continue
		}
		if pattern.String() != c.pattern {
			t.Errorf("%q is shown as %q", c.pattern, pattern)
		}
		for _, raw := range c.matches {
			if !pattern.matches(CanonicalPath(raw)) {
				t.Errorf("%q does not match %q", c.pattern, raw)
			}
		}
		for _, raw := range c.others {
			if pattern.matches(CanonicalPath(raw)) {
				t.Errorf("%q matches %q", c.pattern, raw)
			}
		}
	}
}

func TestABadPathPatternIsRefusedWithWhatWasWanted(t *testing.T) {
	for pattern, want := range map[string]string{
		"":             "begins with `/`",
		"api":          "begins with `/`",
		"*":            "begins with `/`",
		"/a?b":         "without query",
		"/a#b":         "without query",
		"/%2a":         "`~`",
		"/a/%2A%2A":    "`~`",
		"/%zz":         "two hex digits",
		"/**/a":        "last segment only",
		"/a/**/**":     "last segment only",
		"/a*":          "whole segment",
		"/*.js":        "whole segment",
		"/***":         "whole segment",
		"~(":           "RE2",
		"~(?=a)":       "RE2",
		"~a{1,100000}": "RE2",
	} {
		if _, err := ParsePath(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParsePath(%q): %v, want it to say %q", pattern, err, want)
		}
	}
	for _, pattern := range []string{"~a?", "~%2A#", "~"} {
		if _, err := ParsePath(pattern); err != nil {
			t.Errorf("ParsePath(%q): %v", pattern, err)
		}
	}
}

func TestTheZeroPatternsMatchNothing(t *testing.T) {
	for _, path := range []string{"/", "/a", "", "*"} {
		if (PathPattern{}).matches(CanonicalPath(path)) {
			t.Errorf("the zero PathPattern matches %q", path)
		}
	}
	if (HostPattern{}).matches("a", true) || (HostPattern{}).matches("", false) {
		t.Error("the zero HostPattern matches")
	}
}
