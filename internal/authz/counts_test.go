package authz

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// D100: which rule refused is in the metadata and in a metric.
func TestTheRefusingRuleIsNamed(t *testing.T) {
	f := newFixture(t, &countingStore{}, bothFamilies,
		rules.Rule{Name: "wide", Limit: logLimit(100, time.Minute), Cost: 1},
		rules.Rule{Name: "narrow", Limit: logLimit(2, time.Minute), Cost: 1})
	for range 2 {
		f.check(get("/"))
	}
	got := f.check(get("/"))
	want := map[string]any{"decision": "deny", "reason": "limit", "rule": "narrow", "remaining": 0.0, "retry_after_s": 60.0}
	if !maps.Equal(metadataOf(got), want) {
		t.Errorf("metadata %v", metadataOf(got))
	}
	for _, s := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "ratelimitd_denials_total", []string{"rule", "narrow", "reason", "limit"}},
		{1, "ratelimitd_decisions_total", []string{"rule", "narrow", "outcome", "denied"}},
		{2, "ratelimitd_decisions_total", []string{"rule", "narrow", "outcome", "allowed"}}, // D31
		{3, "ratelimitd_decisions_total", []string{"rule", "wide", "outcome", "allowed"}},
		{0, "ratelimitd_denials_total", []string{"rule", "wide", "reason", "limit"}},
		{2, "ratelimitd_requests_total", []string{"outcome", "allowed"}},
		{1, "ratelimitd_requests_total", []string{"outcome", "denied"}},
		{3, "ratelimitd_decision_duration_seconds", nil},
		{3, "ratelimitd_store_duration_seconds", []string{"store", "memory", "result", "ok"}},
		{0, "ratelimitd_store_errors_total", []string{"store", "memory", "reason", "timeout"}},
	} {
		if got := f.series(s.name, s.labels...); got != s.want {
			t.Errorf("%s%v = %v, want %v", s.name, s.labels, got, s.want)
		}
	}
}

// D118: who is banned can tell why, and so can the operator.
func TestARefusalByABanSaysSo(t *testing.T) {
	f := newFixture(t, scriptedStore{"a": {BanLeft: time.Minute, RetryAfter: time.Minute}}, bothFamilies,
		rules.Rule{Name: "a", Limit: logLimit(20, 10*time.Second), Cost: 1, Ban: time.Minute})
	got := f.check(get("/"))
	want := map[string]any{"decision": "deny", "reason": "ban", "rule": "a", "remaining": 0.0, "retry_after_s": 60.0}
	if !maps.Equal(metadataOf(got), want) || headerOf(got, "retry-after") != "60" || got.GetDeniedResponse().GetStatus().GetCode() != 429 {
		t.Errorf("got %v", got)
	}
	if n := f.series("ratelimitd_denials_total", "rule", "a", "reason", "ban"); n != 1 {
		t.Errorf("%v counted", n)
	}
}

// A bucket that was not asked, as the request was refused without it, has said nothing.
func TestBucketsThatWereNotAskedAreNotCounted(t *testing.T) {
	f := newFixture(t, scriptedStore{"a": {RetryAfter: time.Second}, "b": {Skipped: true}, "try": {Skipped: true}}, bothFamilies,
		rules.Rule{Name: "a", Limit: logLimit(1, time.Second), Cost: 1},
		rules.Rule{Name: "b", Limit: logLimit(1, time.Second), Cost: 1},
		rules.Rule{Name: "try", Limit: logLimit(1, time.Second), Cost: 1, Shadow: true})
	if m := metadataOf(f.check(get("/"))); m["rule"] != "a" || m["shadow_denied"] != nil {
		t.Errorf("metadata %v", m)
	}
	for _, rule := range []string{"b", "try"} {
		for _, outcome := range []string{"allowed", "denied", "shadow_denied"} {
			if n := f.series("ratelimitd_decisions_total", "rule", rule, "outcome", outcome); n != 0 {
				t.Errorf("%s: %v counted as %s", rule, n, outcome)
			}
		}
	}
}

func TestShadowRulesAreCountedAndRefuseNothing(t *testing.T) {
	f := newFixture(t, &countingStore{}, bothFamilies,
		rules.Rule{Name: "open", Action: rules.Allow, Shadow: true},
		rules.Rule{Name: "real", Limit: logLimit(3, time.Minute), Cost: 1},
		rules.Rule{Name: "try", Limit: logLimit(1, time.Minute), Cost: 1, Shadow: true})
	var denied []string
	for range 4 {
		got := f.check(get("/"))
		denied = append(denied, fmt.Sprintf("%v %v %v", allowed(got), metadataOf(got)["rule"], metadataOf(got)["shadow_denied"]))
	}
	want := []string{"true real <nil>", "true real [try]", "true real [try]", "false real [try]"}
	if !slices.Equal(denied, want) {
		t.Errorf("got %q, want %q", denied, want)
	}
	if f.series("ratelimitd_decisions_total", "rule", "try", "outcome", "shadow_denied") != 3 ||
		f.series("ratelimitd_decisions_total", "rule", "try", "outcome", "allowed") != 1 ||
		f.series("ratelimitd_decisions_total", "rule", "open", "outcome", "allowed") != 4 {
		t.Error("miscounted")
	}
}

// D97: counters outlive reloads.
func TestCountersGoOnThroughReloads(t *testing.T) {
	f := newFixture(t, &countingStore{}, Answer{})
	for i := range 3 {
		f.Use(Snapshot{Rules: rules.NewSet([]rules.Rule{{Name: "a", Limit: logLimit(100+uint32(i), time.Minute), Cost: 1}}, rules.ClientIP{})})
		f.check(get("/"))
		if n := f.series("ratelimitd_decisions_total", "rule", "a", "outcome", "allowed"); n != float64(i+1) {
			t.Errorf("after reload %d: %v", i, n)
		}
	}
}

// D98: no client value becomes a series.
func TestClientsAddNoSeries(t *testing.T) {
	f := newFixture(t, &countingStore{}, bothFamilies,
		rules.Rule{Name: "k", Key: attributes(t, "header.x-api-key", "path"), Limit: logLimit(1, time.Minute), Cost: 1})
	series := func() (n int) {
		families, err := f.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			n += len(family.GetMetric())
		}
		return n
	}
	before := series()
	for i := range 2000 {
		f.check(get(fmt.Sprint("/", i%1000), "x-api-key", fmt.Sprint(i%1000)))
	}
	if after := series(); after != before {
		t.Errorf("%d series became %d", before, after)
	}
}

func TestUntrustedHeadersAreCounted(t *testing.T) {
	client := rules.ClientIP{From: rules.FromHeaders, Headers: []rules.AddressHeader{{Name: "cf-connecting-ip"}}}
	f := newFixtureFor(t, &countingStore{}, Answer{}, client, rules.Rule{Name: "ip", Key: attributes(t, "client_ip"), Limit: logLimit(1, time.Minute), Cost: 1})
	f.check(get("/", "cf-connecting-ip", "9.9.9.9")) // D42
	if n := f.series("ratelimitd_untrusted_header_total"); n != 1 {
		t.Errorf("%v counted", n)
	}
}

// Rates work from the first refusal on.
func TestEveryReasonOfARefusalHasASeriesFromTheStart(t *testing.T) {
	f := newFixture(t, &countingStore{}, Answer{}, rules.Rule{Name: "a", Limit: logLimit(1, time.Minute), Cost: 1})
	for _, reason := range []limiter.Reason{limiter.ReasonLimit, limiter.ReasonBan, limiter.ReasonLimitZero, limiter.ReasonCost,
		limiter.ReasonKeyMissing, limiter.ReasonRule, limiter.ReasonStore} {
		if n := f.series("ratelimitd_denials_total", "rule", "a", "reason", string(reason)); n != 0 {
			t.Errorf("%s: %v", reason, n)
		}
	}
}
