package authz

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

func localRule(name string, limit limiter.Limit) rules.Rule {
	return rules.Rule{Name: name, Limit: limit, Cost: 1, OnStoreError: rules.Local}
}

// newOutage is a server whose store fails and whose limits are shared by that many daemons.
func newOutage(t *testing.T, replicas uint32, list ...rules.Rule) *fixture {
	t.Helper()
	f := newFixture(t, &countingStore{err: errors.New("gone")}, bothFamilies, list...)
	f.Use(Snapshot{Rules: rules.NewSet(list, rules.ClientIP{}), Answer: bothFamilies, Replicas: replicas})
	return f
}

// D76, D77
func TestInAnOutageADaemonGivesOutItsShareOfTheLimit(t *testing.T) {
	f := newOutage(t, 3, localRule("a", logLimit(8, time.Minute)))
	for i, row := range []struct {
		allowed                bool
		remaining, limit, wait string
		metadata               map[string]any
	}{
		{true, "1", "2", "", map[string]any{"decision": "allow", "rule": "a", "remaining": 1.0, "degraded": true}},
		{true, "0", "2", "", map[string]any{"decision": "allow", "rule": "a", "remaining": 0.0, "degraded": true}},
		{false, "0", "2", "60", map[string]any{
			"decision": "deny", "reason": "limit", "rule": "a", "remaining": 0.0, "retry_after_s": 60.0, "degraded": true}},
	} {
		got := f.check(get("/"))
		headers := headerMap(got)
		if allowed(got) != row.allowed || headers["x-ratelimit-limit"] != row.limit ||
			headers["x-ratelimit-remaining"] != row.remaining || headers["retry-after"] != row.wait {
			t.Errorf("request %d: allowed %v, %v", i, allowed(got), headers)
		}
		if !maps.Equal(metadataOf(got), row.metadata) {
			t.Errorf("request %d: metadata %v", i, metadataOf(got))
		}
	}
	for _, s := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "ratelimitd_requests_total", []string{"outcome", "degraded"}},
		{1, "ratelimitd_requests_total", []string{"outcome", "denied"}},
		{2, "ratelimitd_decisions_total", []string{"rule", "a", "outcome", "allowed"}},
		{1, "ratelimitd_denials_total", []string{"rule", "a", "reason", "limit"}},
		{3, "ratelimitd_store_duration_seconds", []string{"result", "error"}},
	} {
		if got := f.series(s.name, s.labels...); got != s.want {
			t.Errorf("%s%v = %v, want %v", s.name, s.labels, got, s.want)
		}
	}
}

func TestInAnOutageDenyGoesBeforeLocalAndLocalBeforeAllow(t *testing.T) {
	local := localRule("local", logLimit(1, time.Minute))
	admit := rules.Rule{Name: "admit", Limit: logLimit(1, time.Minute), Cost: 1}
	refuse := rules.Rule{Name: "refuse", Limit: logLimit(9, time.Minute), Cost: 1, OnStoreError: rules.Refuse}
	second := localRule("second", logLimit(9, time.Minute))
	trial := localRule("trial", logLimit(1, time.Minute))
	trial.Shadow = true
	never := rules.Rule{Name: "never", Limit: logLimit(5, time.Minute), Cost: 6}
	shadowRefuse := refuse
	shadowRefuse.Name, shadowRefuse.Shadow = "shadow-refuse", true
	type m = map[string]any
	for _, tt := range []struct {
		name     string
		list     []rules.Rule
		statuses [2]int
		last     m
	}{
		{"deny", []rules.Rule{admit, local, refuse}, [2]int{503, 503},
			m{"decision": "deny", "reason": "store", "rule": "refuse", "retry_after_s": 1.0}},
		{"local", []rules.Rule{admit, second, local}, [2]int{200, 429},
			m{"decision": "deny", "reason": "limit", "rule": "local", "remaining": 0.0, "retry_after_s": 60.0, "degraded": true}},
		{"a shadow rule has no say", []rules.Rule{shadowRefuse, local}, [2]int{200, 429},
			m{"decision": "deny", "reason": "limit", "rule": "local", "remaining": 0.0, "retry_after_s": 60.0, "degraded": true}},
		{"a shadow rule is tried locally", []rules.Rule{trial, admit}, [2]int{200, 200},
			m{"decision": "allow", "reason": "store", "rule": "admit", "degraded": true, "shadow_denied": []any{"trial"}}},
		{"a shadow rule alone", []rules.Rule{trial}, [2]int{200, 200}, m{"decision": "allow", "shadow_denied": []any{"trial"}}},
		{"what can never pass, whatever its policy", []rules.Rule{never, local}, [2]int{429, 429},
			m{"decision": "deny", "reason": "cost", "rule": "never", "remaining": 0.0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newOutage(t, 1, tt.list...)
			for i, want := range tt.statuses {
				got, status := f.check(get("/")), 200
				if !allowed(got) {
					status = int(got.GetDeniedResponse().GetStatus().GetCode())
				}
				if status != want {
					t.Errorf("request %d: %d, want %d", i, status, want)
				}
				if i == 1 && fmt.Sprint(metadataOf(got)) != fmt.Sprint(tt.last) {
					t.Errorf("metadata %v, want %v", metadataOf(got), tt.last)
				}
			}
		})
	}
}

func TestACostAboveTheShareAloneWaitsForTheStore(t *testing.T) {
	rule := localRule("a", bucketLimit(90, time.Minute, 30))
	rule.Cost = 11
	f := newOutage(t, 3, rule) // 10 of a burst of 30
	got := f.check(get("/"))
	want := map[string]any{
		"decision": "deny", "reason": "limit", "rule": "a", "remaining": 0.0, "retry_after_s": 1.0, "degraded": true}
	if headerOf(got, "retry-after") != "1" || !maps.Equal(metadataOf(got), want) {
		t.Errorf("%v, metadata %v", headerMap(got), metadataOf(got))
	}
}

func TestTheNextRequestIsTheStoresAgain(t *testing.T) {
	store := &countingStore{err: errors.New("gone")}
	f := newFixture(t, store, bothFamilies, localRule("a", logLimit(1, time.Minute)))
	f.check(get("/"))
	if got := f.check(get("/")); allowed(got) {
		t.Error("the share is not exhausted")
	}
	store.err = nil
	if got := f.check(get("/")); !allowed(got) || metadataOf(got)["degraded"] != nil {
		t.Errorf("with the store back: %v", metadataOf(got))
	}
}
