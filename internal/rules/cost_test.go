package rules

import (
	"math"
	"net/netip"
	"slices"
	"testing"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

func costFrom(attribute string, least, most uint32) *CostFrom {
	return &CostFrom{Attribute: key(attribute)[0], Min: least, Max: most}
}

func TestACostIsReadOfDigitsAloneAndHeldWithinItsBounds(t *testing.T) { // D13, DESIGN §4.4
	r := perMinute("r", 1000)
	r.Cost, r.CostFrom = 7, costFrom("header.x-cost", 2, 100)
	for _, c := range []struct {
		lines []string
		cost  uint32
		valid bool
	}{
		{nil, 7, true}, // absent: the default
		{[]string{"5"}, 5, true},
		{[]string{"005"}, 5, true},
		{[]string{"2"}, 2, true},
		{[]string{"1"}, 2, true},
		{[]string{"0"}, 2, true},
		{[]string{"100"}, 100, true},
		{[]string{"101"}, 100, true},
		{[]string{"4294967297"}, 100, true}, // 2^32+1
		{[]string{"9223372036854775807"}, 100, true},
		{[]string{"9223372036854775808"}, 7, false},
		{[]string{"18446744073709551616"}, 7, false},
		{[]string{"-5"}, 7, false},
		{[]string{"+5"}, 7, false},
		{[]string{"1.5"}, 7, false},
		{[]string{"1e3"}, 7, false},
		{[]string{"1_0"}, 7, false},
		{[]string{"0x5"}, 7, false},
		{[]string{" 5"}, 7, false},
		{[]string{"٥"}, 7, false},
		{[]string{"abc"}, 7, false},
		{[]string{"NaN"}, 7, false},
		{[]string{""}, 7, false},
		{[]string{"5", "5"}, 7, false},
		{[]string{"5,5"}, 7, false},
	} {
		for form, req := range bothForms("x-cost", c.lines) {
			a := NewSet([]Rule{r}, ClientIP{}).Apply(req)
			if a.Hits[0].Cost != c.cost || (a.InvalidCost == nil) != c.valid {
				t.Errorf("%s %q costs %d, invalid for %d rules; want %d, valid %v", form, c.lines, a.Hits[0].Cost, len(a.InvalidCost), c.cost, c.valid)
			}
		}
	}
}

func TestACostOfZeroNeedsAMinOfZero(t *testing.T) { // D12, DESIGN §4.4
	for least, want := range map[uint32]uint32{0: 0, 1: 1} {
		r := perMinute("r", 10)
		r.CostFrom = costFrom("query.cost", least, math.MaxUint32)
		if got := NewSet([]Rule{r}, ClientIP{}).Apply(newRequest("/?cost=0")).Hits[0].Cost; got != want {
			t.Errorf("with a min of %d it costs %d, want %d", least, got, want)
		}
	}
}

func TestTheFirstOverrideThatMatchesReplacesTheNumbersAndKeepsTheBucket(t *testing.T) {
	r := perMinute("r", 10, "client_ip", "route")
	r.Match.Paths = paths("/a/*")
	limit := func(quota uint32) limiter.Limit { l := r.Limit; l.Quota = quota; return l }
	plan := func(values ...string) Match {
		return Match{Headers: []HeaderCondition{{Name: "x-plan", Values: values}}}
	}
	r.Overrides = []Override{
		{Match: plan("pro"), Limit: limit(1000), Cost: 1},
		{Match: plan("pro", "trial"), Limit: limit(20), Cost: 5},
		{Match: Match{Paths: paths("/a/stated")}, Limit: limit(10), Cost: 3, CostFrom: costFrom("header.x-cost", 1, 9)},
		{Match: Match{ClientIPs: []netip.Prefix{must(ParsePrefix("198.51.100.0/24"))}}, Limit: limit(0), Cost: 1},
	}
	bucket := keyOf(t, r, ClientIP{}, newRequest("/a/b"))
	for name, c := range map[string]struct {
		req         *Request
		quota, cost uint32
	}{
		"no override":              {newRequest("/a/b"), 10, 1},
		"other value":              {newRequest("/a/b", "x-plan: free"), 10, 1},
		"first of two":             {newRequest("/a/b", "x-plan: pro"), 1000, 1},
		"second":                   {newRequest("/a/b", "x-plan: trial"), 20, 5},
		"repeated, one listed":     {newRequest("/a/b", "x-plan: pro", "x-plan: free"), 10, 1},
		"joined, one listed":       {newRequest("/a/b", "x-plan: pro,free"), 10, 1},
		"repeated, both of second": {newRequest("/a/b", "x-plan: pro", "x-plan: trial"), 20, 5},
		"its own path":             {newRequest("/a/stated", "x-cost: 8"), 10, 8},
		"its own default":          {newRequest("/a/stated"), 10, 3},
	} {
		a := NewSet([]Rule{r}, ClientIP{}).Apply(c.req)
		if len(a.Hits) != 1 || a.Hits[0].Limit != limit(c.quota) || a.Hits[0].Cost != c.cost || a.Hits[0].Key != bucket || a.Hits[0].Rule != "r" {
			t.Errorf("%s: %+v", name, a.Hits)
		}
	}
	req := newRequest("/a/b")
	req.Peer = netip.MustParseAddr("198.51.100.7")
	if a := NewSet([]Rule{r}, ClientIP{}).Apply(req); a.Hits[0].Limit.Quota != 0 {
		t.Errorf("by address: %+v", a.Hits)
	}
}

func TestTheHeadersOfKeysCostsAndOverridesAreListed(t *testing.T) {
	r := perMinute("r", 1, "cookie.sid", "query.q")
	r.CostFrom = costFrom("header.x-cost", 1, 9)
	r.Overrides = []Override{
		{Match: Match{Headers: []HeaderCondition{{Name: "x-plan", Values: []string{"pro"}}}}, CostFrom: costFrom("header.x-other-cost", 1, 9)},
	}
	got := NewSet([]Rule{r}, ClientIP{}).Headers()
	want := []string{"content-type", "cookie", "x-cost", "x-other-cost", "x-plan"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.Key, r.CostFrom, r.Overrides = nil, costFrom("cookie.cost", 1, 9), nil
	if got := NewSet([]Rule{r}, ClientIP{}).Headers(); len(got) != 2 || got[1] != "cookie" {
		t.Errorf("a cost from a cookie: %v", got)
	}
}
