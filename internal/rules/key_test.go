package rules

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// keyOf is the bucket that the one rule asks for the request.
func keyOf(t *testing.T, r Rule, client ClientIP, req *Request) limiter.Key {
	t.Helper()
	hits := NewSet([]Rule{r}, client).Apply(req).Hits
	if len(hits) != 1 {
		t.Fatalf("%d hits", len(hits))
	}
	return hits[0].Key
}

func TestTheLayoutOfKeysStaysWhatItIs(t *testing.T) {
	r := perMinute("r1", 5, "path", "client_ip", "header.a", "header.b")
	for _, c := range []struct {
		missing MissingKey
		tail    string
	}{
		{UseClientIP, "\x02\x00\x00\x00\x04\xcb\x00\x71\x09"},
		{ShareBucket, "\x03\x00\x00\x00\x00"},
	} {
		r.OnMissingKey = c.missing
		text := "\x00\x00\x00\x02r1" + "\x01" + "\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\x00\x00\x00\x04path" + "\x01" + "\x00\x00\x00\x02/x" +
			"\x00\x00\x00\x09client_ip" + "\x01" + "\x00\x00\x00\x04\xcb\x00\x71\x09" +
			"\x00\x00\x00\x08header.a" + "\x01" + "\x00\x00\x00\x01v" +
			"\x00\x00\x00\x08header.b" + c.tail
		sum := sha256.Sum256([]byte(text))
		if got := keyOf(t, r, ClientIP{}, newRequest("//x", "a: v")); got != limiter.Key(sum[:16]) {
			t.Errorf("the key of %q is %x", text, got)
		}
	}
}

func TestABucketIsFoundAgainWhateverItsNumbers(t *testing.T) { // DESIGN §4.6, D61
	r := perMinute("r", 10, "client_ip")
	was := keyOf(t, r, ClientIP{}, newRequest("/"))
	for name, c := range map[string]struct {
		change func(*Rule)
		same   bool
	}{
		"quota":     {func(r *Rule) { r.Limit.Quota = 2 }, true},
		"window":    {func(r *Rule) { r.Limit.Window = time.Hour }, true},
		"burst":     {func(r *Rule) { r.Limit.Burst = 2 }, true},
		"cost":      {func(r *Rule) { r.Cost = 2 }, true},
		"cost from": {func(r *Rule) { r.CostFrom = costFrom("method", 1, 9) }, true},
		"overrides": {func(r *Rule) { r.Overrides = []Override{{Limit: r.Limit}} }, true},
		"mode":      {func(r *Rule) { r.Shadow = true }, true},
		"match":     {func(r *Rule) { r.Match.Methods = []string{"GET"} }, true},
		"time zone": {func(r *Rule) { r.Limit.Calendar.Zone = time.FixedZone("x", 3600) }, true},
		"period":    {func(r *Rule) { r.Limit.Calendar.Period = limiter.Month }, true},
		"ban":       {func(r *Rule) { r.Ban, r.CountDenied = time.Hour, true }, true},
		"no tick":   {func(r *Rule) { r.Limit.Tick = 0 }, true}, // one millisecond as well
		"tick":      {func(r *Rule) { r.Limit.Tick = 10 * time.Millisecond }, false},
		"algorithm": {func(r *Rule) { r.Limit.Algorithm = limiter.FixedWindow }, false},
		"calendar":  {func(r *Rule) { r.Limit.Algorithm = limiter.CalendarWindow }, false},
		"name":      {func(r *Rule) { r.Name = "s" }, false},
		"key list":  {func(r *Rule) { r.Key = key("client_ip", "method") }, false},
	} {
		changed := r
		c.change(&changed)
		if same := keyOf(t, changed, ClientIP{}, newRequest("/")) == was; same != c.same {
			t.Errorf("%s changed: same bucket %v, want %v", name, same, c.same)
		}
	}
}

func TestNoValueCanImitateAnother(t *testing.T) { // D46, D48, D49
	r := perMinute("r", 1, "header.a", "header.b")
	requests := []*Request{}
	for _, pair := range [][2]string{
		{"ab", "c"}, {"a", "bc"}, {"x_1", "2"}, {"x", "1_2"}, {"p|q", "r"}, {"p", "q|r"}, {"a\x00", "b"}, {"a", "\x00b"}, {"a", "b"}, {"b", "a"},
		{"a b", "1"}, {"a:b", "1"}, {"a\tb", "1"}, {"{x}", "1"}, {"}{", "1"}, {"*", "1"}, {"\x7f", "1"},
		{"毛泽东", "1"}, {"김정일", "1"}, {"é", "1"}, {"e\u0301", "1"}, {"\xff", "1"}, {"\xfe", "1"},
	} {
		requests = append(requests, newRequest("/", "a: "+pair[0], "b: "+pair[1]))
	}
	if n := admitted(NewSet([]Rule{r}, ClientIP{}), requests...); n != len(requests) {
		t.Errorf("%d of %d different clients pass", n, len(requests))
	}

	// A value that spells an address is not the fallback address, and an empty shared part is no value.
	r = perMinute("r", 1, "header.a")
	fallback := keyOf(t, r, ClientIP{}, newRequest("/"))
	for _, value := range []string{"203.0.113.9", "\xcb\x00\x71\x09"} {
		if keyOf(t, r, ClientIP{}, newRequest("/", "a: "+value)) == fallback {
			t.Errorf("the value %q is taken for the fallback address", value)
		}
	}
}

func TestTwoRulesWithOneKeyHaveTheirOwnBuckets(t *testing.T) { // D61
	hits := NewSet([]Rule{perMinute("a", 10, "client_ip"), perMinute("b", 2, "client_ip")}, ClientIP{}).Apply(newRequest("/")).Hits
	if len(hits) != 2 || hits[0].Key == hits[1].Key {
		t.Errorf("%+v", hits)
	}
}

func TestAMissingKeyPartDoesWhatTheRuleSays(t *testing.T) { // D36, D37
	for _, c := range []struct {
		missing              MissingKey
		admitted             int // of 10 from one address and 10 from another, with a quota of 3
		hits, missed, refuse int
	}{
		{UseClientIP, 6, 1, 1, 0},
		{SkipRule, 20, 0, 1, 0},
		{RefuseMissing, 0, 0, 1, 1},
		{ShareBucket, 3, 1, 1, 0},
	} {
		r := perMinute("r", 3, "path", "header.x-api-key")
		r.OnMissingKey = c.missing
		s := NewSet([]Rule{r}, ClientIP{})
		var requests []*Request
		for i := range 20 {
			req := newRequest("/a")
			req.Peer = netip.AddrFrom4([4]byte{192, 0, 2, byte(i / 10)})
			requests = append(requests, req)
		}
		if n := admitted(s, requests...); n != c.admitted {
			t.Errorf("on missing %d: %d pass, want %d", c.missing, n, c.admitted)
		}
		applied := s.Apply(requests[0])
		if len(applied.Hits) != c.hits || len(applied.Missing) != c.missed || len(applied.Refused) != c.refuse {
			t.Errorf("on missing %d: %+v", c.missing, applied)
		}
		if applied := s.Apply(newRequest("/a", "x-api-key: k")); len(applied.Hits) != 1 || applied.Missing != nil || applied.Refused != nil {
			t.Errorf("on missing %d, with the key: %+v", c.missing, applied)
		}
	}
}

func TestAKeyPartIsMissingWhenAbsentEmptyOrRepeated(t *testing.T) { // D36, D38, D50, ENVOY.md §1.2
	r := perMinute("r", 1, "header.k")
	r.OnMissingKey = SkipRule
	s := NewSet([]Rule{r}, ClientIP{})
	for _, lines := range [][]string{nil, {""}, {"a", "b"}, {"a", "a"}, {"a", ""}, {"a,b"}, {"a,"}, {","}} {
		for form, req := range bothForms("k", lines) {
			if applied := s.Apply(req); len(applied.Hits) != 0 || len(applied.Missing) != 1 {
				t.Errorf("%s %q: %+v", form, lines, applied)
			}
		}
	}
	for _, attribute := range []string{"method", "host", "path"} {
		r.Key = key(attribute)
		if applied := NewSet([]Rule{r}, ClientIP{}).Apply(&Request{HTTP: true, Host: "a.example,b"}); len(applied.Missing) != 1 {
			t.Errorf("%s: %+v", attribute, applied)
		}
	}
	r.Key = key("path")
	if applied := NewSet([]Rule{r}, ClientIP{}).Apply(newRequest("/a,b")); len(applied.Hits) != 1 {
		t.Errorf("a path with a comma: %+v", applied)
	}
}

func TestBothEncodingsOfHeadersFindOneBucket(t *testing.T) { // D50
	r := perMinute("r", 1, "header.k")
	for _, lines := range [][]string{{"v"}, {"a", "b"}, nil} {
		forms := bothForms("k", lines)
		if keyOf(t, r, ClientIP{}, forms["apart"]) != keyOf(t, r, ClientIP{}, forms["joined"]) {
			t.Errorf("%q: two buckets", lines)
		}
	}
}

func TestWithoutAClientAddressTheRuleIsSkippedAndNeverShared(t *testing.T) { // D38
	for _, c := range []struct {
		key     []Attribute
		missing MissingKey
		refused bool
	}{
		{key("client_ip"), UseClientIP, false},
		{key("client_ip"), SkipRule, false},
		{key("client_ip"), RefuseMissing, false},
		{key("client_ip"), ShareBucket, false},
		{key("header.k"), UseClientIP, false},
		{key("client_ip", "header.k"), ShareBucket, false},
		{key("client_ip", "header.k"), RefuseMissing, true}, // what the client could have sent it must
		{key("header.k", "client_ip"), RefuseMissing, true},
	} {
		r := perMinute("r", 1)
		r.Key, r.OnMissingKey = c.key, c.missing
		req := newRequest("/")
		req.Peer = netip.Addr{}
		applied := NewSet([]Rule{r}, ClientIP{}).Apply(req)
		if len(applied.Hits) != 0 || !applied.ClientUnknown || len(applied.Missing) != 1 || (len(applied.Refused) == 1) != c.refused {
			t.Errorf("%v, on missing %d: %+v", c.key, c.missing, applied)
		}
	}
	withAddresses := perMinute("r", 1)
	withAddresses.Match.ClientIPs = prefixes("0.0.0.0/0", "::/0")
	req := newRequest("/")
	req.Peer = netip.Addr{}
	if applied := NewSet([]Rule{withAddresses}, ClientIP{}).Apply(req); len(applied.Hits) != 0 || !applied.ClientUnknown {
		t.Errorf("match on addresses: %+v", applied)
	}
	if applied := NewSet([]Rule{perMinute("r", 1, "path")}, ClientIP{}).Apply(req); applied.ClientUnknown || len(applied.Hits) != 1 {
		t.Errorf("no rule asks for the address: %+v", applied)
	}
}

func TestOneClientIsOneBucketHoweverItsAddressIsWritten(t *testing.T) { // D39, D43, D44, D51, D60
	source := ClientIP{From: FromHeaders, Trusted: internal, Headers: []AddressHeader{{Name: "x-forwarded-for"}}, IPv6Prefix: 64}
	s := NewSet([]Rule{perMinute("r", 5, "client_ip")}, source)
	for name, c := range map[string]struct {
		peer, forwarded string // with %d for the number of the request
		want            int    // of 20
	}{
		"a rotating left-most entry": {"10.0.0.5", "1.1.1.%d, 203.0.113.9", 5},
		"a rotating port":            {"10.0.0.5", "203.0.113.9:522%d", 5},
		"one IPv6 network":           {"10.0.0.5", "2001:db8:1:2::%d", 5},
		"many IPv6 networks":         {"10.0.0.5", "2001:db8:1:%d::1", 20},
		"no header":                  {"203.0.113.9", "", 5},
		"a header nobody vouches for": {
			"198.51.100.7", "8.8.8.%d", 5},
	} {
		var requests []*Request
		for i := range 20 {
			req := newRequest("/")
			req.Peer = netip.MustParseAddr(c.peer)
			if c.forwarded != "" {
				req.Headers = []Header{{Name: "x-forwarded-for", Value: fmt.Sprintf(c.forwarded, i)}}
			}
			requests = append(requests, req)
		}
		if n := admitted(s, requests...); n != c.want {
			t.Errorf("%s: %d pass, want %d", name, n, c.want)
		}
	}
}

func TestThePathInAKeyIsTheCanonicalPath(t *testing.T) { // D55, D56
	login := perMinute("login", 5, "path")
	login.Match.Paths = paths("/login")
	s := NewSet([]Rule{login}, ClientIP{})
	var requests []*Request
	for _, path := range []string{"/login", "//login", "/./login", "/x/../login", "/%6Cogin", "/x/..;/login", "/login;v=1", "/login/"} {
		requests = append(requests, newRequest(path))
	}
	if n := admitted(s, requests...); n != 5 {
		t.Errorf("%d of 8 spellings pass, want 5", n)
	}
	for _, path := range []string{"/LOGIN", "/%2Flogin", "/%256Cogin", "/%zz"} {
		if applied := s.Apply(newRequest(path)); len(applied.Hits) > 0 {
			t.Errorf("%q matches", path)
		}
	}
	requests = nil
	for i := range 20 {
		requests = append(requests, newRequest(fmt.Sprintf("/a?x=%d", i)))
	}
	if n := admitted(NewSet([]Rule{perMinute("r", 5, "path")}, ClientIP{}), requests...); n != 5 {
		t.Errorf("%d of 20 queries pass, want 5", n)
	}
}

func TestWithoutThePathInItsKeyARuleIsOneQuotaForAllPaths(t *testing.T) { // D62
	requests := slices.Concat(slices.Repeat([]*Request{newRequest("/a")}, 3), slices.Repeat([]*Request{newRequest("/b")}, 3))
	for want, attributes := range map[int][]string{5: {"client_ip"}, 6: {"client_ip", "path"}} {
		if n := admitted(NewSet([]Rule{perMinute("r", 5, attributes...)}, ClientIP{}), requests...); n != want {
			t.Errorf("key %v: %d of 6 pass, want %d", attributes, n, want)
		}
	}
}

func TestTheRouteIsTheFirstPatternThatMatched(t *testing.T) {
	r := perMinute("r", 1, "route")
	r.Match.Paths = paths("/users/*", "/users/7", "/items/*")
	s := NewSet([]Rule{r}, ClientIP{})
	if n := admitted(s, newRequest("/users/7"), newRequest("/users/8"), newRequest("/items/7"), newRequest("/items/8")); n != 2 {
		t.Errorf("%d pass, want one for each pattern", n)
	}
	r.Match.Paths = nil
	if n := admitted(NewSet([]Rule{r}, ClientIP{}), newRequest("/a"), newRequest("*"), &Request{}); n != 1 {
		t.Errorf("%d pass, want one for a rule without paths", n)
	}
}

func TestAnEmptyKeyIsOneBucketForAll(t *testing.T) {
	other := newRequest("/b")
	other.Peer = netip.Addr{}
	if n := admitted(NewSet([]Rule{perMinute("r", 1)}, ClientIP{}), newRequest("/a"), other, &Request{}); n != 1 {
		t.Errorf("%d pass, want 1", n)
	}
}
