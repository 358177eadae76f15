package rules

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func paths(texts ...string) (list []PathPattern) {
	for _, text := range texts {
		list = append(list, must(ParsePath(text)))
	}
	return list
}

func hosts(texts ...string) (list []HostPattern) {
	for _, text := range texts {
		list = append(list, must(ParseHost(text)))
	}
	return list
}

func key(texts ...string) (list []Attribute) {
	for _, text := range texts {
		list = append(list, must(ParseAttribute(text)))
	}
	return list
}

// newRequest is a GET from 203.0.113.9 with headers written "name: value".
func newRequest(path string, headers ...string) *Request {
	req := &Request{HTTP: true, Method: "GET", Host: "api.example.com", Path: path, Peer: netip.MustParseAddr("203.0.113.9")}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Headers = append(req.Headers, Header{Name: name, Value: value})
	}
	return req
}

// perMinute is a limit rule by the key attributes.
func perMinute(name string, quota uint32, attributes ...string) Rule {
	return Rule{
		Name: name, Key: key(attributes...), Cost: 1,
		Limit: limiter.Limit{Algorithm: limiter.SlidingLog, Quota: quota, Window: time.Minute, Tick: time.Millisecond},
	}
}

// admitted is how many of the requests pass when nothing ever leaves a bucket.
func admitted(s *Set, requests ...*Request) (n int) {
	spent := map[limiter.Key]uint32{}
	for _, req := range requests {
		applied := s.Apply(req)
		full := slices.ContainsFunc(applied.Hits, func(h limiter.Hit) bool { return spent[h.Key] >= h.Limit.Quota })
		if full || len(applied.Refused) > 0 {
			continue
		}
		for _, hit := range applied.Hits {
			spent[hit.Key]++
		}
		n++
	}
	return n
}

func names(rules []*Rule) (list []string) {
	for _, r := range rules {
		list = append(list, r.Name)
	}
	return list
}

func TestEveryMatchingLimitRuleApplies(t *testing.T) { // DESIGN §4.2, §4.3
	other := perMinute("other", 5)
	other.Match.Paths = paths("/b")
	shadow := perMinute("shadow", 3, "path")
	shadow.Shadow, shadow.Cost = true, 7
	all := perMinute("all", 5)
	all.CountDenied, all.Ban = true, time.Hour
	s := NewSet([]Rule{all, other, shadow}, ClientIP{})
	applied := s.Apply(newRequest("/a"))
	if got := names(applied.Rules); !slices.Equal(got, []string{"all", "shadow"}) {
		t.Fatalf("applied: %v", got)
	}
	for i, hit := range applied.Hits {
		r := applied.Rules[i]
		want := limiter.Hit{
			Rule: r.Name, Key: hit.Key, Limit: r.Limit, Cost: r.Cost, Shadow: r.Shadow, CountDenied: r.CountDenied, Ban: r.Ban,
		}
		if hit != want {
			t.Errorf("hit %+v, want %+v", hit, want)
		}
	}
	if applied := NewSet([]Rule{other}, ClientIP{}).Apply(newRequest("/a")); !reflect.DeepEqual(applied, Applied{}) {
		t.Errorf("no rule matches, but: %+v", applied)
	}
	if applied := new(Set).Apply(newRequest("/a")); !reflect.DeepEqual(applied, Applied{}) {
		t.Errorf("there is no rule, but: %+v", applied)
	}
}

func TestTheFirstEnforcedActionThatMatchesDecidesBeforeAnyLimit(t *testing.T) { // DESIGN §4.1, D121
	action := func(name string, a Action, shadow bool, header string) Rule {
		return Rule{Name: name, Action: a, Shadow: shadow, Match: Match{Headers: []HeaderCondition{{Name: header, Presence: Present}}}}
	}
	office := Rule{Name: "office", Action: Allow, Match: Match{ClientIPs: internal}}
	s := NewSet([]Rule{
		perMinute("limit", 5, "client_ip"),
		action("try-allow", Allow, true, "a"),
		action("deny", Deny, false, "b"),
		action("try-deny", Deny, true, "a"),
		office,
		action("late-deny", Deny, false, "c"),
	}, ClientIP{})
	for _, c := range []struct {
		peer    string
		headers []string
		decided string
		shadow  []string
	}{
		{"203.0.113.9", nil, "", nil},
		{"10.1.2.3", nil, "office", nil},
		{"10.1.2.3", []string{"a: 1", "c: 1"}, "office", []string{"try-allow", "try-deny"}},
		{"10.1.2.3", []string{"a: 1", "b: 1"}, "deny", []string{"try-allow"}},
		{"203.0.113.9", []string{"a: 1"}, "", []string{"try-allow", "try-deny"}},
		{"203.0.113.9", []string{"c: 1"}, "late-deny", nil},
	} {
		req := newRequest("/", c.headers...)
		req.Peer = netip.MustParseAddr(c.peer)
		applied := s.Apply(req)
		decided := ""
		if applied.Decided != nil {
			decided = applied.Decided.Name
		}
		if decided != c.decided || !slices.Equal(names(applied.ShadowDecided), c.shadow) {
			t.Errorf("%+v: decided %q, shadow %v", c, decided, names(applied.ShadowDecided))
		}
		if wantHits := c.decided == ""; (len(applied.Hits) == 1) != wantHits || len(applied.Rules) != len(applied.Hits) {
			t.Errorf("%+v: hits %v", c, applied.Hits)
		}
	}
}

func TestForAnAllowRuleEveryValueOfAHeaderMustMatch(t *testing.T) { // DESIGN §3: one forged value must not open the door
	staff := []HeaderCondition{{Name: "x-plan", Values: []string{"staff"}}}
	allow := NewSet([]Rule{{Name: "allow", Action: Allow, Match: Match{Headers: staff}}}, ClientIP{})
	deny := NewSet([]Rule{{Name: "deny", Action: Deny, Match: Match{Headers: staff}}}, ClientIP{})
	for form, req := range bothForms("x-plan", []string{"free", "staff"}) {
		if allow.Apply(req).Decided != nil {
			t.Errorf("%s: the allow rule matches", form)
		}
		if deny.Apply(req).Decided == nil {
			t.Errorf("%s: the deny rule does not match", form)
		}
	}
}

func TestAllConditionsMustHoldAndAnyEntryOfEachIsEnough(t *testing.T) {
	r := perMinute("r", 1)
	r.Match = Match{
		Hosts:     hosts("a.example", "*.b.example"),
		Methods:   []string{"GET", "POST"},
		Paths:     paths("/x", "/y/*"),
		Headers:   []HeaderCondition{{Name: "h", Presence: Present}, {Name: "i", Presence: Absent}},
		ClientIPs: prefixes("192.0.2.0/24", "2001:db8::5"),
	}
	s := NewSet([]Rule{r}, ClientIP{IPv6Prefix: 64})
	good := func() *Request {
		req := newRequest("/y/1", "h: ")
		req.Host, req.Method, req.Peer = "A.B.example:80", "POST", netip.MustParseAddr("192.0.2.7")
		return req
	}
	for name, c := range map[string]struct {
		change func(*Request)
		want   bool
	}{
		"all hold":       {func(*Request) {}, true},
		"IPv6 in full":   {func(r *Request) { r.Peer = netip.MustParseAddr("2001:db8::5") }, true},
		"same group":     {func(r *Request) { r.Peer = netip.MustParseAddr("2001:db8::6") }, false},
		"host":           {func(r *Request) { r.Host = "b.example" }, false},
		"method":         {func(r *Request) { r.Method = "PUT" }, false},
		"method in case": {func(r *Request) { r.Method = "post" }, false},
		"path":           {func(r *Request) { r.Path = "/y" }, false},
		"no header":      {func(r *Request) { r.Headers = nil }, false},
		"extra header":   {func(r *Request) { r.Headers = append(r.Headers, Header{Name: "i"}) }, false},
		"address":        {func(r *Request) { r.Peer = netip.MustParseAddr("192.0.3.7") }, false},
	} {
		req := good()
		c.change(req)
		if got := len(s.Apply(req).Hits) == 1; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAnyHTTPConditionFailsOnAConnection(t *testing.T) { // DESIGN §4.12
	conditions := map[string]Match{
		"hosts":   {Hosts: hosts("*")},
		"methods": {Methods: []string{""}},
		"paths":   {Paths: paths("/**")},
		"absent":  {Headers: []HeaderCondition{{Name: "h", Presence: Absent}}},
	}
	for name, match := range conditions {
		r := perMinute(name, 1)
		r.Match = match
		if applied := NewSet([]Rule{r}, ClientIP{}).Apply(&Request{Peer: netip.MustParseAddr("192.0.2.1")}); len(applied.Hits) > 0 {
			t.Errorf("%s holds", name)
		}
	}
	byAddress := perMinute("by-address", 1, "client_ip", "route")
	byAddress.Match.ClientIPs = prefixes("192.0.2.0/24")
	byPath := perMinute("by-path", 1, "path")
	s := NewSet([]Rule{byAddress, byPath}, ClientIP{From: FromHeaders, Trusted: internal})
	applied := s.Apply(&Request{Peer: netip.MustParseAddr("192.0.2.1")})
	if !slices.Equal(names(applied.Rules), []string{"by-address", "by-path"}) || !slices.Equal(names(applied.Missing), []string{"by-path"}) {
		t.Errorf("%+v", applied)
	}
	if applied := s.Apply(&Request{}); len(applied.Hits) > 0 || !applied.ClientUnknown {
		t.Errorf("of an empty request: %+v", applied)
	}
}

func TestAPathThatCannotBeParsedIsStillLimited(t *testing.T) { // D56
	rule := func(name string, patterns ...string) Rule {
		r := perMinute(name, 1, "path")
		r.Match.Paths = paths(patterns...)
		return r
	}
	s := NewSet([]Rule{rule("any"), rule("below-root", "/**"), rule("below", "/a/**"), rule("exact", "/a"), rule("regexp", "~.")}, ClientIP{})
	for _, path := range []string{"*", "/%zz?x", "a"} {
		if got := names(s.Apply(newRequest(path)).Rules); !slices.Equal(got, []string{"any", "below-root"}) {
			t.Errorf("%q: %v", path, got)
		}
	}
	if n := admitted(NewSet([]Rule{rule("any")}, ClientIP{}), newRequest("/%zz?1"), newRequest("/%zz?2"), newRequest("/%zz#3")); n != 1 {
		t.Errorf("%d of 3 pass: the query of an unparsable path makes a bucket", n)
	}
}

func TestAHostThatCannotBeParsedMatchesOnlyRulesForAllHosts(t *testing.T) {
	rule := func(name string, patterns ...string) Rule {
		r := perMinute(name, 1)
		r.Match.Hosts = hosts(patterns...)
		return r
	}
	s := NewSet([]Rule{rule("any"), rule("star", "*"), rule("exact", "a.example"), rule("below", "*.example")}, ClientIP{})
	for host, want := range map[string][]string{
		"a.example,b":  {"any", "star"},
		"":             {"any", "star"},
		"A.example.:1": {"any", "star", "exact", "below"},
		"c.b.example":  {"any", "star", "below"},
	} {
		req := newRequest("/")
		req.Host = host
		if got := names(s.Apply(req).Rules); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func TestTheHeadersThatTheRulesReadAreListed(t *testing.T) {
	r := perMinute("r", 1, "client_ip", "header.x-key")
	r.Match.Headers = []HeaderCondition{{Name: "x-plan", Presence: Absent}, {Name: "a"}}
	client := ClientIP{From: FromHeaders, Headers: []AddressHeader{{Name: "cf-connecting-ip"}}}
	s := NewSet([]Rule{r, r, {Name: "d", Action: Deny, Match: Match{Headers: []HeaderCondition{{Name: "x-bad"}}}}}, client)
	if got, want := s.Headers(), []string{"a", "cf-connecting-ip", "content-type", "x-bad", "x-forwarded-for", "x-key", "x-plan"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	want := map[string][]string{
		"a": {"r"}, "x-key": {"r"}, "x-plan": {"r"}, "x-bad": {"d"}, "cf-connecting-ip": {"client_ip"}, "x-forwarded-for": {"client_ip"},
	}
	if got := s.Readers(); !reflect.DeepEqual(got, want) {
		t.Errorf("readers %v, want %v", got, want)
	}
	if got := NewSet(nil, ClientIP{Headers: client.Headers}).Headers(); !slices.Equal(got, []string{"content-type"}) {
		t.Errorf("without rules: %v", got)
	}
}

func TestRulesAreListedInFileOrderAndAreTheOnesApplied(t *testing.T) {
	given := []Rule{perMinute("limit", 1), {Name: "allow", Action: Allow, Match: Match{Methods: []string{"PUT"}}}}
	s := NewSet(given, ClientIP{})
	given[0].Name = "changed"
	if got := names(s.Rules()); !slices.Equal(got, []string{"limit", "allow"}) {
		t.Errorf("%v", got)
	}
	if s.Apply(newRequest("/")).Rules[0] != s.Rules()[0] {
		t.Error("Applied points to another rule")
	}
}
