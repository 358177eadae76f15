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
	for range 400 {
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
			Methods: some(random, 2, "GET", "POST", "PUT"),
			Paths: paths(some(random, 3, "/", "/**", "/*", "/a", "/a/**", "/a/*", "/*/b", "/a/b", "/a/*/c/**", "/a/b/c", "/*/*", "/*/**", "/*/*/c", "/ab", "/%2F",
				"~b", "~^/a", "~^/a/", "~^/a/b$", "~^/a/b/?$", "~^/a/b*/c", "~^/a/(b|c)", "~(?i)^/A/", "~^/a/b|^/c", "~(?m)^/b/c", "~^a/b", "~^//", "~^/$", `~^/a/\*/c`)...),
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
	req := newRequest("/" + strings.Join(some(random, 4, "a", "b", "c", "ab", "*", "%2f", "", ".."), "/"))
	req.Method = []string{"GET", "POST", "get", ""}[random.IntN(4)]
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

func TestTheIndexLooksAtNoRuleForAnotherHostMethodOrBeginningOfPath(t *testing.T) {
	for _, shape := range shapes {
		s := shapeSet(shape.match, 100)
		f := newFacts(lastRequest(), &s.client)
		want := 1
		if shape.grows {
			want = 100
		}
		if n := len(s.index.find(nil, &f)); n != want {
			t.Errorf("%s: %d of 100 rules are looked at, want %d", shape.name, n, want)
		}
	}
}

func TestTheLiteralBeginningOfARegexpIsOfWholeSegments(t *testing.T) {
	for expression, want := range map[string]string{
		"^/api/v1/[a-z]+$": "/api/v1", "^/api/v[0-9]/": "/api", "^/api": "", "^/api/b*": "/api", "^/api/(v1/)?x": "/api",
		"^/api/v1/?$": "/api", `^/api/a\.b/`: "/api/a.b", "/api/": "", "^/a/|^/b/": "", "(?i)^/api/": "", "(?m)^/api/": "", "^": "", "": "", "(": "",
	} {
		if got := literalBeginning(expression); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}
