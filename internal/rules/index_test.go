package rules

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestTheIndexFindsWhatAScanOfAllRulesFinds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := NewSet(randomRules(random), ClientIP{})
		all := make([]int32, len(s.rules))
		for i := range all {
			all[i] = int32(i)
		}
		for range 100 {
			req := randomRequest(random)
			f := newFacts(req, &s.client)
			var want Applied
			s.evaluate(&want, &f, all)
			if got := s.Apply(req); !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v:\nindex %+v\nscan  %+v", req, got, want)
			}
		}
	}
}

// some returns up to n of the texts, perhaps one twice.
func some(random *rand.Rand, n int, texts ...string) (list []string) {
	for range random.IntN(n + 1) {
		list = append(list, texts[random.IntN(len(texts))])
	}
	return list
}

func randomRules(random *rand.Rand) (list []Rule) {
	for i := range random.IntN(20) {
		r := perMinute(fmt.Sprint("r", i), 5, some(random, 2, "client_ip", "path", "host", "route", "header.h")...)
		r.Action, r.Shadow, r.OnMissingKey = Action(max(0, random.IntN(12)-9)), random.IntN(4) == 0, MissingKey(random.IntN(4))
		r.Match = Match{
			Hosts:   hosts(some(random, 2, "*", "*.b.c", "a.b.c", "*.c", "b.c", "c", "[::1]")...),
			Methods: some(random, 1, "GET", "POST"),
			Paths:   paths(some(random, 3, "/", "/**", "/*", "/a", "/a/**", "/a/*", "/*/b", "/a/b", "/a/*/c/**", "/a/b/c", "~b", "/ab", "/%2F")...),
		}
		if random.IntN(5) == 0 {
			r.Match.Headers = []HeaderCondition{{Name: "h", Presence: Presence(random.IntN(3)), Values: []string{"v"}}}
		}
		if random.IntN(5) == 0 {
			r.Match.ClientIPs = prefixes("203.0.113.0/24")
		}
		list = append(list, r)
	}
	return list
}

func randomRequest(random *rand.Rand) *Request {
	req := newRequest("/" + strings.Join(some(random, 4, "a", "b", "c", "ab", "%2f", "", ".."), "/"))
	req.Host = []string{"a.b.c", "b.c", "c", "x.a.b.c", "A.B.C.:80", "[::1]", "", "a,b", "bc"}[random.IntN(9)]
	if random.IntN(2) == 0 {
		req.Headers = []Header{{Name: "h", Value: []string{"v", "w", ""}[random.IntN(3)]}}
	}
	switch random.IntN(8) {
	case 0:
		req.Path = []string{"", "*", "/%zz", "a"}[random.IntN(4)]
	case 1:
		req.Peer = netip.Addr{}
	case 2:
		return &Request{Peer: req.Peer}
	}
	return req
}

func TestTheIndexLooksAtFewRules(t *testing.T) {
	s := manyRules(10_000)
	f := newFacts(newRequest("/api/v1/tenant-77/items?page=2"), &s.client)
	if n := len(s.index.find(nil, &f)); n != 2 {
		t.Errorf("%d of 10000 rules are candidates, want 2", n)
	}
}

// manyRules is rules of which two match a request for a tenant's items.
func manyRules(n int) *Set {
	list := []Rule{perMinute("all", 1000, "client_ip")}
	for i := range n - 1 {
		r := perMinute(fmt.Sprint("tenant-", i), 100, "client_ip", "header.x-api-key")
		r.Match.Paths = paths(fmt.Sprintf("/api/v1/tenant-%d/**", i))
		list = append(list, r)
	}
	return NewSet(list, ClientIP{From: FromHeaders, Trusted: internal, Headers: []AddressHeader{{Name: "x-forwarded-for"}}})
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n, "rules"), func(b *testing.B) {
			s := manyRules(n)
			req := newRequest("/api/v1/tenant-7/items?page=2", "accept: */*", "user-agent: curl/8", "x-forwarded-for: 203.0.113.9, 10.0.0.3", "x-api-key: k-1234567890")
			req.Peer = netip.MustParseAddr("10.0.0.5")
			if hits := s.Apply(req).Hits; len(hits) != 2 {
				b.Fatalf("%d hits", len(hits))
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Apply(req)
			}
		})
	}
}
