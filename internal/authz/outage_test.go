package authz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// D76, D108, D110: the rules' failure policies, and what goes before them.
func TestAnOutageIsDecidedByTheRules(t *testing.T) {
	admit := rules.Rule{Name: "admit", Limit: logLimit(9, time.Second), Cost: 1}
	refuse := rules.Rule{Name: "refuse", Limit: logLimit(9, time.Second), Cost: 1, OnStoreError: rules.Refuse}
	never := rules.Rule{Name: "never", Limit: logLimit(5, time.Second), Cost: 6}
	zero := rules.Rule{Name: "zero", Limit: logLimit(0, time.Second), Cost: 1, Shadow: true}
	shadow := rules.Rule{Name: "try", Limit: logLimit(9, time.Second), Cost: 1, Shadow: true, OnStoreError: rules.Refuse}
	missing := rules.Rule{Name: "key", Key: attributes(t, "header.x"), Limit: logLimit(9, time.Second), Cost: 1, OnMissingKey: rules.RefuseMissing}
	type m = map[string]any
	for _, tt := range []struct {
		name     string
		list     []rules.Rule
		status   int // 200: allowed
		body     string
		metadata m
		outcome  string
	}{
		{"allow", []rules.Rule{admit}, 200, "",
			m{"decision": "allow", "reason": "store", "rule": "admit", "degraded": true}, "degraded"},
		{"deny goes before allow", []rules.Rule{admit, refuse}, 503, `{"error":"unavailable","retry_after_seconds":1}`,
			m{"decision": "deny", "reason": "store", "rule": "refuse", "retry_after_s": 1.0}, "unavailable"},
		{"a hit that can never pass is refused by its limit", []rules.Rule{refuse, never}, 429, `{"error":"rate_limited"}`,
			m{"decision": "deny", "reason": "cost", "rule": "never", "remaining": 0.0}, "denied"},
		{"403 goes before 503", []rules.Rule{refuse, missing}, 403, `{"error":"denied"}`,
			m{"decision": "deny", "reason": "key_missing", "rule": "key"}, "denied"},
		{"403 goes before 429", []rules.Rule{never, missing}, 403, `{"error":"denied"}`,
			m{"decision": "deny", "reason": "key_missing", "rule": "key"}, "denied"},
		{"a shadow rule refuses nobody", []rules.Rule{shadow}, 200, "",
			m{"decision": "allow"}, "allowed"},
		{"a shadow rule has no policy beside others", []rules.Rule{shadow, admit}, 200, "",
			m{"decision": "allow", "reason": "store", "rule": "admit", "degraded": true}, "degraded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, &countingStore{err: errors.New("gone")}, bothFamilies, tt.list...)
			got := f.check(get("/"))
			status := 200
			if !allowed(got) {
				status = int(got.GetDeniedResponse().GetStatus().GetCode())
			}
			if status != tt.status || got.GetDeniedResponse().GetBody() != tt.body {
				t.Errorf("got %d %s", status, got.GetDeniedResponse().GetBody())
			}
			if !maps.Equal(metadataOf(got), tt.metadata) {
				t.Errorf("metadata %v", metadataOf(got))
			}
			wait := map[int]string{503: "1"}[tt.status]
			if headerOf(got, "retry-after") != wait || (headerOf(got, "x-ratelimit-limit") != "") != (tt.status == 429) {
				t.Errorf("headers %v", headerMap(got))
			}
			if f.series("ratelimitd_requests_total", "outcome", tt.outcome) != 1 {
				t.Errorf("not counted as %s", tt.outcome)
			}
		})
	}
	t.Run("a shadow hit that can never pass is still told", func(t *testing.T) {
		f := newFixture(t, &countingStore{err: errors.New("gone")}, bothFamilies, zero, admit)
		if got := f.check(get("/")); fmt.Sprint(metadataOf(got)["shadow_denied"]) != "[zero]" || metadataOf(got)["degraded"] != true {
			t.Errorf("metadata %v", metadataOf(got))
		}
	})
}

func TestAnOutageIsCounted(t *testing.T) {
	f := newFixture(t, &countingStore{err: context.DeadlineExceeded}, bothFamilies,
		rules.Rule{Name: "a", Limit: logLimit(9, time.Second), Cost: 1, OnStoreError: rules.Refuse})
	f.check(get("/"))
	for _, s := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "ratelimitd_store_errors_total", []string{"store", "memory", "reason", "timeout"}},
		{1, "ratelimitd_store_duration_seconds", []string{"store", "memory", "result", "error"}},
		{0, "ratelimitd_store_duration_seconds", []string{"store", "memory", "result", "ok"}},
		{1, "ratelimitd_denials_total", []string{"rule", "a", "reason", "store"}},
		{1, "ratelimitd_decisions_total", []string{"rule", "a", "outcome", "denied"}},
	} {
		if got := f.series(s.name, s.labels...); got != s.want {
			t.Errorf("%s%v = %v, want %v", s.name, s.labels, got, s.want)
		}
	}
}
