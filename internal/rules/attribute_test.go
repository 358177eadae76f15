package rules

import (
	"crypto/sha256"
	"net/url"
	"strings"
	"testing"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// metadata holds values by their place as it is written.
type metadata map[string]string

func (m metadata) Value(at MetadataPath) (string, bool) {
	text, ok := m[at.String()]
	return text, ok
}

func TestEveryAttributeIsReadFromItsOwnPlace(t *testing.T) {
	req := newRequest("/a?q=1&empty=&flag&twice=1&twice=1&a%20b=c%2Bd+e&bad=%zz%4&%=percent&x==y#z?frag=1",
		"cookie: sid=abc; x=1,y=2", "cookie: z = \"3\" ;t=1;t=2;SID=other; bare", "x-plan: pro")
	req.Principal = "spiffe://lab/tenant-a"
	req.Extensions = map[string]string{"tier": "gold", "empty": ""}
	req.Metadata = metadata{"envoy.filters.http.jwt_authn:payload.sub": "user-42"}
	for _, c := range []struct {
		attribute, value string
		count            int
	}{
		{"principal", "spiffe://lab/tenant-a", 1},
		{"extension.tier", "gold", 1}, {"extension.empty", "", 1}, {"extension.Tier", "", 0},
		{"metadata.envoy.filters.http.jwt_authn:payload.sub", "user-42", 1}, {"metadata.envoy.filters.http.jwt_authn:payload", "", 0},
		{"query.q", "1", 1}, {"query.Q", "", 0}, {"query.empty", "", 1}, {"query.flag", "", 1}, {"query.twice", "1", 2},
		{"query.a b", "c+d e", 1}, {"query.a%20b", "", 0}, {"query.bad", "%zz%4", 1}, {"query.%", "percent", 1}, {"query.x", "=y", 1},
		{"query.frag", "", 0},
		{"cookie.sid", "abc", 1}, {"cookie.x", "1", 1}, {"cookie.y", "2", 1}, {"cookie.z", `"3"`, 1}, {"cookie.t", "2", 2},
		{"cookie.SID", "other", 1}, {"cookie.bare", "", 0},
		{"client_ip", "203.0.113.9", 1}, {"header.x-plan", "pro", 1}, {"header.x-none", "", 0},
	} {
		f := newFacts(req, &ClientIP{})
		if value, count := f.value(key(c.attribute)[0], "*"); value != c.value || count != c.count {
			t.Errorf("%s is %q, %d times; want %q, %d times", c.attribute, value, count, c.value, c.count)
		}
	}
}

// Envoy hands over the lines of a cookie header, or joins those of HTTP/1 with commas and those of HTTP/2 with semicolons.
func TestCookiesAreReadAlikeHoweverTheirLinesAreJoined(t *testing.T) { // ENVOY.md §1.2, D50
	r := perMinute("r", 1, "cookie.b")
	r.OnMissingKey = SkipRule
	want := keyOf(t, r, ClientIP{}, newRequest("/", "cookie: a=1", "cookie: b=2; c=3"))
	for _, line := range []string{"cookie: a=1,b=2; c=3", "cookie: a=1; b=2; c=3", "cookie: b=2", "cookie: a=1;b=2;"} {
		if keyOf(t, r, ClientIP{}, newRequest("/", line)) != want {
			t.Errorf("%s: another bucket", line)
		}
	}
	for _, lines := range [][]string{
		nil, {"cookie: "}, {"cookie: b="}, {"cookie: b"}, {"cookie: b=1; b=1"}, {"cookie: b=1,b=2"}, {"cookie: b=1", "cookie: b=2"}, {"cookie: bb=1"},
	} {
		if a := NewSet([]Rule{r}, ClientIP{}).Apply(newRequest("/", lines...)); len(a.Hits) != 0 || len(a.Missing) != 1 {
			t.Errorf("%q: %+v", lines, a)
		}
	}
}

func TestAQueryParameterInTheKeyIsMissingWhenAbsentEmptyOrRepeated(t *testing.T) { // D55
	r := perMinute("r", 1, "query.op")
	r.OnMissingKey = SkipRule
	s := NewSet([]Rule{r}, ClientIP{})
	for _, path := range []string{"/", "/?", "/?op", "/?op=", "/?op=a&op=b", "/?op=a&%6fp=a", "/?opp=a", "/#?op=a", "/?a#&op=a"} {
		if a := s.Apply(newRequest(path)); len(a.Hits) != 0 || len(a.Missing) != 1 {
			t.Errorf("%s: %+v", path, a)
		}
	}
	want := keyOf(t, r, ClientIP{}, newRequest("/?op=a b"))
	for _, path := range []string{"/?op=a+b", "/?op=a%20b", "/x?y=z&%6F%70=a%20b&", "//?&&op=a+b#op=c", "*?op=a+b"} {
		if keyOf(t, r, ClientIP{}, newRequest(path)) != want {
			t.Errorf("%s: another bucket", path)
		}
	}
}

func TestWhatIsNotOfHTTPIsKnownOfAConnectionToo(t *testing.T) { // DESIGN §4.12
	req := &Request{Principal: "p", Extensions: map[string]string{"tier": "gold"}, Metadata: metadata{"n:a": "1"}, Path: "/?q=1"}
	for attribute, known := range map[string]bool{
		"principal": true, "extension.tier": true, "metadata.n:a": true, "query.q": false, "cookie.sid": false,
	} {
		r := perMinute("r", 1, attribute)
		r.OnMissingKey = SkipRule
		if a := NewSet([]Rule{r}, ClientIP{}).Apply(req); len(a.Hits) == 1 != known {
			t.Errorf("%s: %+v", attribute, a)
		}
	}
}

func TestConditionsOnQueryExtensionsAndMetadata(t *testing.T) {
	query := func(presence Presence, values ...string) Match {
		return Match{Query: []QueryCondition{{Name: "expand", Presence: presence, Values: values}}}
	}
	extension := Match{Extensions: []ExtensionCondition{{Name: "tier", Values: []string{"gold", ""}}}}
	place := must(ParseMetadataPath("n:plan"))
	plan := Match{Metadata: []MetadataCondition{{At: place, Values: []string{"free", "pro"}}}}
	with := func(tier, plan string) *Request {
		req := newRequest("/")
		req.Extensions, req.Metadata = map[string]string{"tier": tier}, metadata{"n:plan": plan}
		return req
	}
	for name, c := range map[string]struct {
		match  Match
		req    *Request
		limits bool // whether a limit or deny rule matches
		allows bool // whether an allow rule does
	}{
		"value":                {query(Values, "all", "some"), newRequest("/?a&expand=%61ll"), true, true},
		"other value":          {query(Values, "all"), newRequest("/?expand=ALL"), false, false},
		"no comma list":        {query(Values, "all"), newRequest("/?expand=all,x"), false, false},
		"no parameter":         {query(Values, "", "all"), newRequest("/?x=all"), false, false},
		"empty value":          {query(Values, ""), newRequest("/?expand"), true, true},
		"no values":            {query(Values), newRequest("/?expand"), false, false},
		"repeated":             {query(Values, "all"), newRequest("/?expand=all&expand=x"), true, false},
		"repeated, all listed": {query(Values, "all", "x"), newRequest("/?expand=x&expand=all"), true, true},
		"present":              {query(Present), newRequest("/?expand"), true, true},
		"not present":          {query(Present), newRequest("/?expan"), false, false},
		"absent":               {query(Absent), newRequest("/"), true, true},
		"not absent":           {query(Absent), newRequest("/?expand="), false, false},
		"absent without HTTP":  {query(Absent), &Request{}, false, false},
		"extension":            {extension, with("gold", ""), true, true},
		"empty extension":      {extension, with("", ""), true, true},
		"other extension":      {extension, with("gold2", ""), false, false},
		"no extension":         {extension, newRequest("/"), false, false},
		"metadata":             {plan, with("", "pro"), true, true},
		"other metadata":       {plan, with("", "pro,free"), false, false},
		"no metadata":          {plan, newRequest("/"), false, false},
		"without HTTP":         {plan, &Request{Metadata: metadata{"n:plan": "pro"}}, true, true},
	} {
		for action, want := range map[Action]bool{Deny: c.limits, Allow: c.allows} {
			a := NewSet([]Rule{{Name: "r", Action: action, Match: c.match}}, ClientIP{}).Apply(c.req)
			if got := a.Decided != nil; got != want {
				t.Errorf("%s, action %d: matches %v, want %v", name, action, got, want)
			}
		}
	}
}

func TestTheKeyPartsOfEveryKindAreLaidOutAlike(t *testing.T) {
	req := newRequest("/?op=a+b", "cookie: sid=s")
	req.Principal, req.Extensions, req.Metadata = "p", map[string]string{"tier": "gold"}, metadata{"n:a.b": "1"}
	for attribute, value := range map[string]string{
		"principal": "p", "query.op": "a b", "cookie.sid": "s", "extension.tier": "gold", "metadata.n:a.b": "1",
	} {
		text := "\x00\x00\x00\x01r" + "\x01" + "\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\x00\x00\x00" + string(rune(len(attribute))) + attribute + "\x01" + "\x00\x00\x00" + string(rune(len(value))) + value
		sum := sha256.Sum256([]byte(text))
		if got := keyOf(t, perMinute("r", 5, attribute), ClientIP{}, req); got != limiter.Key(sum[:16]) {
			t.Errorf("the key of %q is %x", text, got)
		}
	}
}

// FuzzQuery holds the reading of a query to that of net/url, where that reads it at all.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"a=1&b=2", "a", "a=&a=%61+b", "%61=b", "a=%zz", "a=1&&a=2=3", "%", "a+b=c", "=x"} {
		f.Add(query, "a", "sid=1; a=2,a")
	}
	f.Fuzz(func(t *testing.T, query, name, cookies string) {
		req := newRequest("/?" + query)
		req.Headers = []Header{{Name: "cookie", Value: cookies}}
		_, n := only(req.cookie(name))
		if n > strings.Count(cookies, "=") {
			t.Errorf("%d cookies %q in %q", n, name, cookies)
		}
		var got []string
		for value := range req.query(name) {
			got = append(got, value)
		}
		parsed, err := url.ParseQuery(query)
		if err != nil || name == "" || strings.Contains(query, "#") {
			return
		}
		if want := parsed[name]; strings.Join(got, "\x00") != strings.Join(want, "\x00") || len(got) != len(want) {
			t.Errorf("%q has %q of %q, want %q", query, got, name, want)
		}
	})
}
