package authz

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// keyedBy is a limit rule with that key.
func keyedBy(t testing.TB, name string, attribute ...string) rules.Rule {
	return rules.Rule{Name: name, Key: attributes(t, attribute...), Limit: logLimit(1000, time.Minute), Cost: 1}
}

// watching is a server that looks at so many requests of each snapshot.
func watching(t testing.TB, requests int64, client rules.ClientIP, list ...rules.Rule) *fixture {
	f := newFixtureFor(t, scriptedStore{}, bothFamilies, client)
	f.watched = requests
	f.Use(Snapshot{Rules: rules.NewSet(list, client)})
	return f
}

// warned returns the warnings of headers, each with who reads it.
func (f *fixture) warned() (list []string) {
	for _, entry := range f.logs.All() {
		if header, ok := entry.ContextMap()["header"]; ok {
			list = append(list, fmt.Sprint(header, entry.ContextMap()["read_by"]))
		}
	}
	return list
}

func (f *fixture) wantWarned(when string, want ...string) {
	f.t.Helper()
	if got := f.warned(); !slices.Equal(got, want) {
		f.t.Errorf("%s: warned of %q, want %q", when, got, want)
	}
}

func TestAHeaderThatNoneOfTheFirstRequestsHasIsWarnedOfOnce(t *testing.T) {
	client := rules.ClientIP{From: rules.FromHeaders, Headers: []rules.AddressHeader{{Name: "x-real-ip"}}}
	forms := map[string]func(*authv3.CheckRequest) *authv3.CheckRequest{
		"headers":    func(r *authv3.CheckRequest) *authv3.CheckRequest { return r },
		"header_map": raw,
		"decoded in full": func(r *authv3.CheckRequest) *authv3.CheckRequest {
			r.GetAttributes().GetRequest().GetHttp().Headers["X-Unusual"] = "1"
			return r
		},
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			f := watching(t, 3, client, keyedBy(t, "a", "header.x-key", "cookie.session"), keyedBy(t, "b", "header.x-key", "header.x-key"), keyedBy(t, "c", "header.x-plan"))
			f.check(form(get("/", "x-forwarded-for", "192.0.2.1")))
			f.check(form(get("/")))
			f.wantWarned("before the last request")
			if n := f.series("ratelimitd_unseen_headers"); n != 0 {
				t.Errorf("%v headers unseen before the last request", n)
			}
			f.check(form(get("/", "x-plan", "")))
			want := []string{"cookie[a]", "x-key[a b]", "x-real-ip[client_ip]"}
			f.wantWarned("after it", want...)
			for range 5 {
				f.check(form(get("/")))
			}
			f.wantWarned("later", want...)
			if n := f.series("ratelimitd_unseen_headers"); n != 3 {
				t.Errorf("%v headers unseen", n)
			}
		})
	}
}

func TestHeadersThatAllCameAreNotLookedForAnyLonger(t *testing.T) {
	f := watching(t, 3, rules.ClientIP{}, keyedBy(t, "a", "header.x-key"))
	f.check(get("/", "x-key", "1"))
	if !f.current.Load().unseen.over.Load() {
		t.Error("looks on")
	}
	for range 5 {
		f.check(get("/"))
	}
	f.wantWarned("in the end")
}

func TestRequestsWithoutHTTPHaveNoHeadersToMiss(t *testing.T) {
	f := watching(t, 1, rules.ClientIP{}, keyedBy(t, "a", "header.x-key"))
	f.check(&authv3.CheckRequest{Attributes: &authv3.AttributeContext{Source: from("203.0.113.9")}})
	f.wantWarned("after a connection")
	f.check(get("/"))
	f.wantWarned("after a request", "x-key[a]")
}

// content-type is read of every request, but need not come.
func TestContentTypeIsWarnedOfOnlyIfARuleReadsIt(t *testing.T) {
	f := watching(t, 1, rules.ClientIP{}, keyedBy(t, "a", "host"))
	f.check(get("/"))
	f.wantWarned("no rule reads it")
	f = watching(t, 1, rules.ClientIP{}, keyedBy(t, "a", "header.content-type"))
	f.check(get("/"))
	f.wantWarned("a rule reads it", "content-type[a]")
}

func TestANewRuleSetLooksAnewForWhatTheOldOneHasNotSeen(t *testing.T) {
	f := watching(t, 1, rules.ClientIP{}, keyedBy(t, "a", "header.x-seen", "header.x-never"))
	f.check(get("/", "x-seen", "1"))
	f.wantWarned("of the old rules", "x-never[a]")
	f.Use(Snapshot{Rules: rules.NewSet([]rules.Rule{keyedBy(t, "b", "header.x-seen", "header.x-never", "header.x-new")}, rules.ClientIP{})})
	if n := f.series("ratelimitd_unseen_headers"); n != 0 {
		t.Errorf("%v headers unseen of the new rules", n)
	}
	f.check(get("/"))
	f.wantWarned("of both", "x-never[a]", "x-never[b]", "x-new[b]")
}

func TestTheReadersThatAWarningNamesAreFew(t *testing.T) {
	var list []rules.Rule
	for i := range 14 {
		list = append(list, keyedBy(t, fmt.Sprint(i), "header.x-key"))
	}
	f := watching(t, 1, rules.ClientIP{}, list...)
	f.check(get("/"))
	f.wantWarned("14 readers", "x-key[0 1 2 3 4 5 6 7 8 9 and 4 more]")
}

func TestOfManyRequestsAtATimeTheLastOneWarns(t *testing.T) {
	const callers, each = 8, 50
	f := watching(t, callers*each, rules.ClientIP{}, keyedBy(t, "a", "header.x-once", "header.x-never"))
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range each {
				request := get("/")
				if caller == 3 && i == each-1 {
					request = get("/", "x-once", "1")
				}
				f.check(request)
			}
		})
	}
	all.Wait()
	f.wantWarned("all came", "x-never[a]")
}
