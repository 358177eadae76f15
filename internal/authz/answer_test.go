package authz

import (
	"maps"
	"net/http"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// The whole messages, as Envoy gets them.
func TestAnswersOnTheWire(t *testing.T) {
	list := []rules.Rule{
		{Name: "sec", Limit: logLimit(10, time.Second), Cost: 1},
		{Name: "day", Limit: logLimit(1000, 24*time.Hour), Cost: 1},
	}
	tests := []struct {
		name, contentType string
		store             scriptedStore
		want              string
	}{
		{
			name: "allowed",
			store: scriptedStore{
				"sec": {Allowed: true, Remaining: 4, ResetAfter: 300 * time.Millisecond},
				"day": {Allowed: true, Remaining: 996, ResetAfter: 80_000 * time.Second},
			},
			want: `{"status": {}, "okResponse": {"responseHeadersToAdd": [
				{"header": {"key": "x-ratelimit-limit", "value": "10"}, "appendAction": "OVERWRITE_IF_EXISTS_OR_ADD"},
				{"header": {"key": "x-ratelimit-remaining", "value": "4"}, "appendAction": "OVERWRITE_IF_EXISTS_OR_ADD"},
				{"header": {"key": "x-ratelimit-reset", "value": "1"}, "appendAction": "OVERWRITE_IF_EXISTS_OR_ADD"},
				{"header": {"key": "ratelimit-policy", "value": "\"sec\";q=10;w=1, \"day\";q=1000;w=86400"}, "appendAction": "OVERWRITE_IF_EXISTS_OR_ADD"},
				{"header": {"key": "ratelimit", "value": "\"sec\";r=4;t=1, \"day\";r=996;t=80000"}, "appendAction": "OVERWRITE_IF_EXISTS_OR_ADD"}]},
			"dynamicMetadata": {"decision": "allow", "rule": "sec", "remaining": 4}}`,
		},
		{
			name: "refused",
			store: scriptedStore{
				"sec": {Allowed: true, Remaining: 4, ResetAfter: 300 * time.Millisecond},
				"day": {RetryAfter: 6001 * time.Millisecond},
			},
			want: `{"status": {"code": 8}, "deniedResponse": {"status": {"code": 429}, "headers": [
				{"header": {"key": "content-type", "value": "application/json"}},
				{"header": {"key": "retry-after", "value": "7"}},
				{"header": {"key": "x-ratelimit-limit", "value": "1000"}},
				{"header": {"key": "x-ratelimit-remaining", "value": "0"}},
				{"header": {"key": "x-ratelimit-reset", "value": "7"}},
				{"header": {"key": "ratelimit-policy", "value": "\"day\";q=1000;w=86400"}},
				{"header": {"key": "ratelimit", "value": "\"day\";r=0;t=7"}}],
				"body": "{\"error\":\"rate_limited\",\"retry_after_seconds\":7}"},
			"dynamicMetadata": {"decision": "deny", "reason": "limit", "rule": "day", "remaining": 0, "retry_after_s": 7}}`,
		},
		{
			name: "refused, gRPC", contentType: "application/grpc+proto",
			store: scriptedStore{
				"sec": {RetryAfter: time.Second},
				"day": {Allowed: true, Remaining: 1},
			},
			want: `{"status": {"code": 8}, "deniedResponse": {"status": {"code": "OK"}, "headers": [
				{"header": {"key": "content-type", "value": "application/grpc"}},
				{"header": {"key": "grpc-status", "value": "8"}},
				{"header": {"key": "grpc-message", "value": "rate limited, retry in 1 s"}},
				{"header": {"key": "grpc-status-details-bin", "value": "CAgSGnJhdGUgbGltaXRlZCwgcmV0cnkgaW4gMSBzGjAKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBAoCCAE"}},
				{"header": {"key": "retry-after", "value": "1"}},
				{"header": {"key": "x-ratelimit-limit", "value": "10"}},
				{"header": {"key": "x-ratelimit-remaining", "value": "0"}},
				{"header": {"key": "x-ratelimit-reset", "value": "1"}},
				{"header": {"key": "ratelimit-policy", "value": "\"sec\";q=10;w=1"}},
				{"header": {"key": "ratelimit", "value": "\"sec\";r=0;t=1"}}]},
			"dynamicMetadata": {"decision": "deny", "reason": "limit", "rule": "sec", "remaining": 0, "retry_after_s": 1}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.store, bothFamilies, list...)
			got := f.check(get("/", "content-type", tt.contentType))
			want := fromJSON(t, tt.want, &authv3.CheckResponse{})
			if !proto.Equal(got, want) {
				t.Errorf("got  %s\nwant %s", protojson.Format(got), protojson.Format(want))
			}
		})
	}
}

// D27, D29: for which rule the headers speak, and what they say.
func TestLimitHeaders(t *testing.T) {
	ms, s, hour := time.Millisecond, time.Second, time.Hour
	type h = map[string]string
	tests := []struct {
		name  string
		list  []rules.Rule
		store scriptedStore
		want  h
	}{
		{
			"a full bucket resets in no time",
			[]rules.Rule{{Name: "look", Limit: logLimit(3, s)}},
			scriptedStore{"look": {Allowed: true, Remaining: 3}},
			h{"x-ratelimit-limit": "3", "x-ratelimit-remaining": "3", "x-ratelimit-reset": "0",
				"ratelimit-policy": `"look";q=3;w=1`, "ratelimit": `"look";r=3;t=0`},
		},
		{
			"a token bucket shows its burst and the time to fill it",
			[]rules.Rule{{Name: "b", Limit: bucketLimit(3, s, 10), Cost: 1}},
			scriptedStore{"b": {Allowed: true, Remaining: 9, ResetAfter: 334 * ms}},
			h{"x-ratelimit-limit": "10", "x-ratelimit-remaining": "9", "x-ratelimit-reset": "1",
				"ratelimit-policy": `"b";q=10;w=4`, "ratelimit": `"b";r=9;t=1`},
		},
		{
			"a window of part of a second is not shown",
			[]rules.Rule{{Name: "a", Limit: logLimit(3, 1500*ms), Cost: 1}},
			scriptedStore{"a": {Allowed: true, Remaining: 2, ResetAfter: 1500 * ms}},
			h{"x-ratelimit-limit": "3", "x-ratelimit-remaining": "2", "x-ratelimit-reset": "2",
				"ratelimit-policy": `"a";q=3`, "ratelimit": `"a";r=2;t=2`},
		},
		{
			"two refusals: the longest wait, so that the retry passes",
			[]rules.Rule{{Name: "a", Limit: logLimit(1, 2*s), Cost: 1}, {Name: "b", Limit: logLimit(9, hour), Cost: 1}, {Name: "c", Limit: logLimit(9, hour), Cost: 1}},
			scriptedStore{"a": {RetryAfter: 2 * s}, "b": {RetryAfter: 49_001 * ms}, "c": {Allowed: true, Remaining: 8}},
			h{"content-type": "application/json", "retry-after": "50", "x-ratelimit-limit": "9", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "50",
				"ratelimit-policy": `"a";q=1;w=2, "b";q=9;w=3600`, "ratelimit": `"a";r=0;t=2, "b";r=0;t=50`},
		},
		{
			"a refusal that can never pass is the longest wait",
			[]rules.Rule{{Name: "a", Limit: logLimit(1, hour), Cost: 1}, {Name: "b", Limit: logLimit(5, s), Cost: 6}},
			scriptedStore{"a": {RetryAfter: hour}, "b": {RetryAfter: limiter.Never}},
			h{"content-type": "application/json", "x-ratelimit-limit": "5", "x-ratelimit-remaining": "0",
				"ratelimit-policy": `"a";q=1;w=3600, "b";q=5;w=1`, "ratelimit": `"a";r=0;t=3600, "b";r=0`},
		},
		{
			"a limit of zero has no window",
			[]rules.Rule{{Name: "z", Limit: logLimit(0, s), Cost: 1}},
			scriptedStore{"z": {RetryAfter: limiter.Never}},
			h{"content-type": "application/json", "x-ratelimit-limit": "0", "x-ratelimit-remaining": "0",
				"ratelimit-policy": `"z";q=0`, "ratelimit": `"z";r=0`},
		},
		{
			"a wait below a millisecond is a second", // D25
			[]rules.Rule{{Name: "a", Limit: logLimit(1, s), Cost: 1}},
			scriptedStore{"a": {RetryAfter: 1}},
			h{"content-type": "application/json", "retry-after": "1", "x-ratelimit-limit": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1",
				"ratelimit-policy": `"a";q=1;w=1`, "ratelimit": `"a";r=0;t=1`},
		},
		{
			"a refusal shows nothing left, whatever a smaller cost could get",
			[]rules.Rule{{Name: "a", Limit: logLimit(9, s), Cost: 5}},
			scriptedStore{"a": {Remaining: 4, RetryAfter: s}},
			h{"content-type": "application/json", "retry-after": "1", "x-ratelimit-limit": "9", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1",
				"ratelimit-policy": `"a";q=9;w=1`, "ratelimit": `"a";r=0;t=1`},
		},
		{
			"a window of the calendar has no length to show",
			[]rules.Rule{{Name: "a", Limit: dayLimit(9), Cost: 1}, {Name: "b", Limit: logLimit(9, hour), Cost: 1}},
			scriptedStore{"a": {Allowed: true, Remaining: 5, ResetAfter: 2*hour + 1}, "b": {Allowed: true, Remaining: 8, ResetAfter: hour}},
			h{"x-ratelimit-limit": "9", "x-ratelimit-remaining": "5", "x-ratelimit-reset": "7201",
				"ratelimit-policy": `"a";q=9, "b";q=9;w=3600`, "ratelimit": `"a";r=5;t=7201, "b";r=8;t=3600`},
		},
		{
			"a refusal by the calendar waits for midnight",
			[]rules.Rule{{Name: "a", Limit: dayLimit(9), Cost: 1}},
			scriptedStore{"a": {RetryAfter: 2*hour + 1}},
			h{"content-type": "application/json", "retry-after": "7201", "x-ratelimit-limit": "9", "x-ratelimit-remaining": "0",
				"x-ratelimit-reset": "7201", "ratelimit-policy": `"a";q=9`, "ratelimit": `"a";r=0;t=7201`},
		},
		{
			"a refusal says nothing of buckets that were not asked",
			[]rules.Rule{{Name: "a", Limit: logLimit(9, s), Cost: 1}, {Name: "b", Limit: logLimit(1, s), Cost: 1}},
			scriptedStore{"a": {Skipped: true}, "b": {RetryAfter: s}},
			h{"content-type": "application/json", "retry-after": "1", "x-ratelimit-limit": "1", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1",
				"ratelimit-policy": `"b";q=1;w=1`, "ratelimit": `"b";r=0;t=1`},
		},
		{
			"shadow rules show nothing",
			[]rules.Rule{{Name: "a", Limit: logLimit(9, s), Cost: 1}, {Name: "sh", Shadow: true, Limit: logLimit(1, s), Cost: 1}},
			scriptedStore{"a": {Allowed: true, Remaining: 8, ResetAfter: s}, "sh": {RetryAfter: hour}},
			h{"x-ratelimit-limit": "9", "x-ratelimit-remaining": "8", "x-ratelimit-reset": "1",
				"ratelimit-policy": `"a";q=9;w=1`, "ratelimit": `"a";r=8;t=1`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.store, bothFamilies, tt.list...)
			if got := headerMap(f.check(get("/"))); !maps.Equal(got, tt.want) {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
		})
	}
}

func TestHeaderFamiliesAreSwitchedByTheAnswer(t *testing.T) {
	list := []rules.Rule{{Name: "a", Limit: logLimit(9, time.Second), Cost: 1}}
	for _, tt := range []struct {
		answer             Answer
		xRateLimit, policy string
	}{
		{Answer{}, "", ""},
		{Answer{XRateLimit: true}, "9", ""},
		{Answer{RateLimit: true}, "", `"a";q=9;w=1`},
	} {
		for _, d := range []limiter.Decision{{Allowed: true}, {RetryAfter: time.Second}} {
			f := newFixture(t, scriptedStore{"a": d}, tt.answer, list...)
			got := f.check(get("/"))
			if x, p := headerOf(got, "x-ratelimit-limit"), headerOf(got, "ratelimit-policy"); x != tt.xRateLimit || p != tt.policy {
				t.Errorf("%+v, allowed %v: x-ratelimit-limit %q, ratelimit-policy %q", tt.answer, d.Allowed, x, p)
			}
			if want := map[bool]string{true: "", false: "1"}[d.Allowed]; headerOf(got, "retry-after") != want {
				t.Errorf("%+v, allowed %v: retry-after %q", tt.answer, d.Allowed, headerOf(got, "retry-after"))
			}
		}
	}
}

// D111: an own status is for the limits alone.
func TestTheStatusOfARefusal(t *testing.T) {
	deny := rules.Rule{Name: "d", Action: rules.Deny}
	limit := rules.Rule{Name: "a", Limit: logLimit(0, time.Second), Cost: 1}
	for _, tt := range []struct {
		name   string
		rule   rules.Rule
		status int
		want   int
		body   string
	}{
		{"limit", limit, 0, http.StatusTooManyRequests, `{"error":"rate_limited"}`},
		{"limit, own status", limit, 599, 599, `{"error":"rate_limited"}`},
		{"deny rule, own status", deny, 599, http.StatusForbidden, `{"error":"denied"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, &countingStore{}, Answer{Status: tt.status}, tt.rule)
			got := f.check(get("/"))
			if code := int(got.GetDeniedResponse().GetStatus().GetCode()); code != tt.want || got.GetStatus().GetCode() != 8 {
				t.Errorf("status %d beside code %d, want %d beside 8", code, got.GetStatus().GetCode(), tt.want)
			}
			if body := got.GetDeniedResponse().GetBody(); body != tt.body {
				t.Errorf("body %s, want %s", body, tt.body)
			}
			if headerOf(got, "retry-after") != "" || headerOf(got, "x-ratelimit-limit") != "" {
				t.Errorf("headers %v", headerMap(got))
			}
		})
	}
}

// Envoy drops a denied response's header that says append, and adds a second line beside the upstream's to a header of an
// allowed one that does not say overwrite.
func TestHeadersAreAddedTheWayEnvoyKeepsThem(t *testing.T) {
	rule := rules.Rule{Name: "a", Limit: logLimit(1, time.Second), Cost: 1}
	f := newFixture(t, &countingStore{}, bothFamilies, rule)
	for _, h := range f.check(get("/")).GetOkResponse().GetResponseHeadersToAdd() {
		if h.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
			t.Errorf("allowed: %v", h)
		}
	}
	for _, h := range f.check(get("/")).GetDeniedResponse().GetHeaders() {
		if h.GetAppendAction() != 0 {
			t.Errorf("denied: %v", h)
		}
	}
}
