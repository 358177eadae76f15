package rules

import (
	"fmt"
	"testing"
)

func TestHeaderConditions(t *testing.T) {
	plans := func(values ...string) HeaderCondition { return HeaderCondition{Name: "x-plan", Values: values} }
	present, absent := HeaderCondition{Name: "x-plan", Presence: Present}, HeaderCondition{Name: "x-plan", Presence: Absent}
	const agent = "Mozilla/5.0 (KHTML, like Gecko)"
	for _, c := range []struct {
		condition HeaderCondition
		lines     []string
		limits    bool // whether a limit or deny rule sees the condition hold
		allows    bool // whether an allow rule does
	}{
		{present, nil, false, false},
		{present, []string{""}, true, true},
		{present, []string{"a", "b"}, true, true},
		{absent, nil, true, true},
		{absent, []string{""}, false, false},
		{plans("free", "pro"), nil, false, false},
		{plans("free", "pro"), []string{"pro"}, true, true},
		{plans("free", "pro"), []string{" pro\t"}, true, true},
		{plans("free", "pro"), []string{"PRO"}, false, false},
		{plans("free", "pro"), []string{"pro2"}, false, false},
		{plans("free", "pro"), []string{""}, false, false},
		{plans("free", "pro"), []string{"free", "pro"}, true, true},
		{plans("free", "pro"), []string{"pro", "admin"}, true, false},
		{plans("free", "pro"), []string{"admin", "pro"}, true, false},
		{plans("free", "pro"), []string{"pro", ""}, true, false},
		{plans("free", "pro"), []string{"adminpro", "profree"}, false, false},
		{plans(""), []string{""}, true, true},
		{plans(""), []string{"a", ""}, true, false},
		{plans(""), []string{"a"}, false, false},
		{plans(agent), []string{agent}, true, true},
		{plans(agent), []string{"x", agent}, true, false},
		{plans(agent), []string{agent, "x"}, true, false},
		{plans("a,b"), []string{"a", "b"}, true, true},
		{plans("a,b"), []string{"aa", "b"}, false, false},
		{plans(), []string{"a"}, false, false},
	} {
		for form, req := range bothForms("x-plan", c.lines) {
			if got := c.condition.holds(req, false); got != c.limits {
				t.Errorf("limit rule, %+v, %s %q: %v, want %v", c.condition, form, c.lines, got, c.limits)
			}
			if got := c.condition.holds(req, true); got != c.allows {
				t.Errorf("allow rule, %+v, %s %q: %v, want %v", c.condition, form, c.lines, got, c.allows)
			}
		}
	}
}

// bothForms is the same request as Envoy sends it with encode_raw_headers and without.
func bothForms(name string, lines []string) map[string]*Request { // D50
	apart, joined := newRequest("/"), newRequest("/")
	for i, line := range lines {
		apart.Headers = append(apart.Headers, Header{Name: name, Value: line})
		if i == 0 {
			joined.Headers = []Header{{Name: name, Value: line}}
		} else {
			joined.Headers[0].Value += "," + line
		}
	}
	return map[string]*Request{"apart": apart, "joined": joined}
}

func TestAHeaderNameIsATokenInLowerCase(t *testing.T) {
	if name, err := ParseHeaderName("X-API-Key"); name != "x-api-key" || err != nil {
		t.Errorf("got %q, %v", name, err)
	}
	for _, text := range []string{"", " ", "a b", ":path", "a:", "é", "a,b", "x\x00"} {
		if name, err := ParseHeaderName(text); err == nil {
			t.Errorf("%q is accepted as %q", text, name)
		}
	}
}

func TestAttributesAreReadAndShown(t *testing.T) {
	for _, text := range []string{"client_ip", "method", "host", "path", "route", "header.x-api-key", "principal", "query.filter[a b]", "query.a.b",
		"cookie.__Host-sid", "extension.tier", "metadata.envoy.filters.http.jwt_authn:payload.sub", "metadata.n:a:b.c"} {
		if a, err := ParseAttribute(text); err != nil || fmt.Sprint(a) != text {
			t.Errorf("ParseAttribute(%q) = %v, %v", text, a, err)
		}
	}
	upper, _ := ParseAttribute("header.X-API-Key")
	if lower, _ := ParseAttribute("header.x-api-key"); upper != lower {
		t.Errorf("%v is not %v: the case of a header's name makes another bucket", upper, lower)
	}
	for _, text := range []string{"", "ip", "Path", "header", "header.", "header.a b", "headers.a", "path ", "principal.a", "query", "query.",
		"cookie.", "cookie.a=b", "cookie.a;b", "cookie.a b", "extension.", "metadata.", "metadata.n", "metadata.:a", "metadata.n:", "metadata.n:a..b"} {
		if a, err := ParseAttribute(text); err == nil {
			t.Errorf("%q is accepted as %v", text, a)
		}
	}
}
