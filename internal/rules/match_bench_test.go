package rules

import (
	"fmt"
	"testing"
)

// shapes are sets of rules by what tells them apart: match makes the match of a rule from its name. The last one, called last,
// alone matches lastRequest, but where all match.
var shapes = []struct {
	name  string
	match func(name string) Match
	grows bool // the index cannot tell the rules apart
	most  int  // rules; 0 is no bound
}{
	{"own path", func(name string) Match {
		return Match{Paths: paths("/api/v1/" + name + "/items")}
	}, false, 0},
	{"own path below one host", func(name string) Match {
		return Match{Hosts: hosts("*.example.com"), Paths: paths("/api/v1/" + name + "/**")}
	}, false, 0},
	{"own host", func(name string) Match {
		return Match{Hosts: hosts(name + ".example.com"), Paths: paths("/api/**")}
	}, false, 0},
	{"own method", func(name string) Match { // only the last name is a method that is asked for
		return Match{Methods: []string{map[bool]string{true: "GET", false: "POST"}[name == "last"]}, Paths: paths("/api/v1/*/items")}
	}, false, 0},
	{"own segment after a wildcard", func(name string) Match {
		return Match{Paths: paths("/api/*/" + name + "/items")}
	}, false, 0},
	{"regexp after an own beginning", func(name string) Match {
		return Match{Paths: paths("~^/api/v1/" + name + "/[a-z]+$")}
	}, false, 0},
	{"regexp not anchored", func(name string) Match {
		return Match{Paths: paths("~/" + name + "/[a-z]+$")}
	}, true, 10_000},
	{"own header value", func(name string) Match {
		return Match{Headers: []HeaderCondition{{Name: "x-tenant", Values: []string{name}}}}
	}, true, 0},
	{"all match", func(string) Match { return Match{Paths: paths("/api/**")} }, true, 100},
}

// BenchmarkMatch is what a set of rules makes of a request, the hit's key included, by the number of rules and what tells them
// apart.
func BenchmarkMatch(b *testing.B) {
	for _, shape := range shapes {
		for _, n := range []int{10, 100, 1_000, 10_000, 100_000} {
			if shape.most > 0 && n > shape.most {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				s := shapeSet(shape.match, n)
				req := lastRequest()
				var applied Applied
				b.ReportAllocs()
				for b.Loop() {
					s.ApplyTo(&applied, req)
				}
				b.ReportMetric(float64(len(applied.Hits)), "hits")
			})
		}
	}
}

// lastRequest is one that the last rule of each shape matches.
func lastRequest() *Request {
	req := newRequest("/api/v1/last/items?page=2", "accept: */*", "x-tenant: last")
	req.Host = "last.example.com"
	return req
}

func shapeSet(match func(string) Match, n int) *Set {
	list := make([]Rule, n)
	for i := range list {
		name := fmt.Sprint("r", i)
		if i == n-1 {
			name = "last"
		}
		list[i] = perMinute(name, 100, "client_ip")
		list[i].Match = match(name)
	}
	return NewSet(list, ClientIP{})
}
