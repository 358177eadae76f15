package authz

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/metadata"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

func TestWithoutAMatchingRuleARequestIsAllowed(t *testing.T) {
	store := &countingStore{}
	f := newFixture(t, store, bothFamilies, rules.Rule{Name: "a", Match: paths(t, "/x"), Limit: logLimit(0, time.Second), Cost: 1})
	got := f.check(get("/y"))
	if !allowed(got) || got.GetStatus() == nil || got.GetOkResponse() == nil || len(headerMap(got)) > 0 {
		t.Errorf("got %v", got)
	}
	if want := map[string]any{"decision": "allow"}; !maps.Equal(metadataOf(got), want) {
		t.Errorf("metadata %v", metadataOf(got))
	}
	if len(store.takes) > 0 || f.series("ratelimitd_requests_total", "outcome", "unmatched") != 1 {
		t.Error("the store was asked, or the request not counted as unmatched")
	}
}

func TestAServerWithoutRulesAllowsEverything(t *testing.T) {
	f := newFixture(t, &countingStore{}, Answer{})
	for _, request := range []*authv3.CheckRequest{nil, {}, {Attributes: &authv3.AttributeContext{}}, get("/")} {
		if got := f.check(request); !allowed(got) || got.GetStatus() == nil {
			t.Errorf("%v: %v", request, got)
		}
	}
}

// D121
func TestAnAllowRuleAsksNoStoreAndShowsNoLimit(t *testing.T) {
	store := &countingStore{}
	f := newFixture(t, store, bothFamilies,
		rules.Rule{Name: "all", Limit: logLimit(1, time.Minute), Cost: 1},
		rules.Rule{Name: "office", Action: rules.Allow, Match: rules.Match{ClientIPs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}}})
	for range 1000 {
		got := f.check(get("/"))
		if !allowed(got) || len(headerMap(got)) > 0 {
			t.Fatalf("got %v", got)
		}
		if want := map[string]any{"decision": "allow", "reason": "rule", "rule": "office"}; !maps.Equal(metadataOf(got), want) {
			t.Fatalf("metadata %v", metadataOf(got))
		}
	}
	if len(store.takes) > 0 {
		t.Errorf("%d takes", len(store.takes))
	}
	if n := f.series("ratelimitd_decisions_total", "rule", "office", "outcome", "allowed"); n != 1000 {
		t.Errorf("%v counted", n)
	}
}

func TestADenyRuleRefusesWith403AndSpendsNothing(t *testing.T) {
	store := &countingStore{}
	f := newFixture(t, store, bothFamilies,
		rules.Rule{Name: "all", Limit: logLimit(0, time.Minute), Cost: 1},
		rules.Rule{Name: "try", Action: rules.Deny, Shadow: true},
		rules.Rule{Name: "bad", Action: rules.Deny, Match: paths(t, "/bad")})
	got := f.check(get("/bad"))
	if allowed(got) || got.GetDeniedResponse().GetStatus().GetCode() != 403 || got.GetDeniedResponse().GetBody() != `{"error":"denied"}` {
		t.Errorf("got %v", got)
	}
	if want := map[string]string{"content-type": "application/json"}; !maps.Equal(headerMap(got), want) {
		t.Errorf("headers %v", headerMap(got))
	}
	if m := metadataOf(got); m["reason"] != "rule" || m["rule"] != "bad" || fmt.Sprint(m["shadow_denied"]) != "[try]" {
		t.Errorf("metadata %v", m)
	}
	if len(store.takes) > 0 {
		t.Error("the store was asked")
	}
	for _, outcome := range []string{"denied", "shadow_denied"} {
		rule := map[string]string{"denied": "bad", "shadow_denied": "try"}[outcome]
		if f.series("ratelimitd_decisions_total", "rule", rule, "outcome", outcome) != 1 {
			t.Errorf("%s is not counted as %s", rule, outcome)
		}
	}
}

// D36, D37, D50: the four ways to take a missing key part, in both forms in which Envoy sends headers.
func TestAMissingKeyPart(t *testing.T) {
	for _, tt := range []struct {
		way              rules.MissingKey
		allowed          int
		status           int
		reason           any
		denials, refusal string
	}{
		{way: rules.UseClientIP, allowed: 3, status: 429, reason: "limit", denials: "limit"},
		{way: rules.ShareBucket, allowed: 3, status: 429, reason: "limit", denials: "limit"},
		{way: rules.SkipRule, allowed: 10},
		{way: rules.RefuseMissing, allowed: 0, status: 403, reason: "key_missing", denials: "key_missing"},
	} {
		for _, form := range []func(*authv3.CheckRequest) *authv3.CheckRequest{
			func(r *authv3.CheckRequest) *authv3.CheckRequest { return r }, raw,
		} {
			store := &countingStore{}
			f := newFixture(t, store, bothFamilies, rules.Rule{
				Name: "k", Key: attributes(t, "path", "header.x-api-key"), Limit: logLimit(3, time.Minute), Cost: 1, OnMissingKey: tt.way,
			})
			passed := 0
			for range 10 {
				got := f.check(form(get("/p", "x-api-key", ""))) // D38: empty is missing
				if allowed(got) {
					passed++
					continue
				}
				if int(got.GetDeniedResponse().GetStatus().GetCode()) != tt.status || metadataOf(got)["reason"] != tt.reason {
					t.Errorf("way %d: %v", tt.way, got)
				}
			}
			if passed != tt.allowed || f.series("ratelimitd_key_missing_total", "rule", "k") != 10 {
				t.Errorf("way %d: %d passed, want %d; key_missing %v", tt.way, passed, tt.allowed, f.series("ratelimitd_key_missing_total", "rule", "k"))
			}
			if tt.denials != "" && f.series("ratelimitd_denials_total", "rule", "k", "reason", tt.denials) != float64(10-passed) {
				t.Errorf("way %d: denials not counted as %s", tt.way, tt.denials)
			}
		}
	}
}

// A request that is refused for a missing key spends nothing, but shadow rules go on deciding.
func TestARefusalForAMissingKeyTakesShadowHitsOnly(t *testing.T) {
	store := &countingStore{}
	f := newFixture(t, store, bothFamilies,
		rules.Rule{Name: "wide", Limit: logLimit(0, time.Minute), Cost: 1},
		rules.Rule{Name: "try", Limit: logLimit(0, time.Minute), Cost: 1, Shadow: true},
		rules.Rule{Name: "key", Key: attributes(t, "header.x"), Limit: logLimit(1, time.Minute), Cost: 1, OnMissingKey: rules.RefuseMissing})
	got := f.check(get("/"))
	if m := metadataOf(got); allowed(got) || m["rule"] != "key" || m["reason"] != "key_missing" || fmt.Sprint(m["shadow_denied"]) != "[try]" {
		t.Errorf("metadata %v", m)
	}
	if len(headerMap(got)) != 1 {
		t.Errorf("headers %v", headerMap(got))
	}
	if len(store.takes) != 1 || len(store.takes[0]) != 1 || store.takes[0][0].Rule != "try" {
		t.Errorf("taken: %v", store.takes)
	}
}

// A rule that counts refused requests spends whoever refuses, and says nothing of it in a refusal that is another's.
func TestARefusalForAMissingKeyTakesHitsThatCountItToo(t *testing.T) {
	store := &countingStore{}
	f := newFixture(t, store, bothFamilies,
		rules.Rule{Name: "wide", Limit: logLimit(9, time.Minute), Cost: 1},
		rules.Rule{Name: "counting", Limit: logLimit(1, time.Minute), Cost: 1, CountDenied: true, Ban: time.Hour},
		rules.Rule{Name: "key", Key: attributes(t, "header.x"), Limit: logLimit(1, time.Minute), Cost: 1, OnMissingKey: rules.RefuseMissing})
	for range 2 {
		got := f.check(get("/"))
		want := map[string]any{"decision": "deny", "reason": "key_missing", "rule": "key"}
		if !maps.Equal(metadataOf(got), want) || len(headerMap(got)) != 1 {
			t.Errorf("metadata %v, headers %v", metadataOf(got), headerMap(got))
		}
	}
	for _, hits := range store.takes {
		if len(hits) != 1 || hits[0].Rule != "counting" || hits[0].Shadow || !hits[0].CountDenied || hits[0].Ban != time.Hour {
			t.Errorf("taken: %+v", hits)
		}
	}
	for _, outcome := range []string{"allowed", "denied"} {
		if n := f.series("ratelimitd_decisions_total", "rule", "counting", "outcome", outcome); len(store.takes) != 2 || n != 1 {
			t.Errorf("%v counted as %s, want 1", n, outcome)
		}
	}
}

func TestAShadowRuleWithAMissingKeyRefusesNobody(t *testing.T) {
	f := newFixture(t, &countingStore{}, bothFamilies, rules.Rule{
		Name: "try", Key: attributes(t, "header.x"), Limit: logLimit(1, time.Minute), Cost: 1, OnMissingKey: rules.RefuseMissing, Shadow: true,
	})
	got := f.check(get("/"))
	if !allowed(got) || fmt.Sprint(metadataOf(got)["shadow_denied"]) != "[try]" || metadataOf(got)["rule"] != nil {
		t.Errorf("got %v", got)
	}
	if f.series("ratelimitd_decisions_total", "rule", "try", "outcome", "shadow_denied") != 1 ||
		f.series("ratelimitd_denials_total", "rule", "try", "reason", "key_missing") != 0 {
		t.Error("not counted as shadow_denied alone")
	}
}

// D38: without a client address the rule is skipped, never one bucket for all; one warning a minute.
func TestAnUnknownClientAddressSkipsTheRule(t *testing.T) {
	store := &countingStore{}
	f := newFixture(t, store, bothFamilies, rules.Rule{Name: "ip", Key: attributes(t, "client_ip"), Limit: logLimit(1, time.Minute), Cost: 1})
	now := time.Unix(1e9, 0)
	f.now = func() time.Time { return now }
	request := get("/")
	request.Attributes.Source = nil
	for range 10 {
		if got := f.check(request); !allowed(got) || len(headerMap(got)) > 0 {
			t.Errorf("got %v", got)
		}
	}
	if len(store.takes) > 0 || f.series("ratelimitd_client_unknown_total") != 10 || f.series("ratelimitd_key_missing_total", "rule", "ip") != 10 {
		t.Error("a bucket was asked, or the requests not counted")
	}
	if f.logs.Len() != 1 {
		t.Errorf("%d warnings", f.logs.Len())
	}
	now = now.Add(time.Minute)
	f.check(request)
	f.check(request)
	if f.logs.Len() != 2 {
		t.Errorf("%d warnings after a minute", f.logs.Len())
	}
}

// D49: bytes are compared. Envoy's map form has replaced what is no UTF-8; the raw form has it.
func TestHeaderValuesAreComparedAsBytes(t *testing.T) {
	rule := rules.Rule{Name: "k", Key: attributes(t, "header.name"), Limit: logLimit(1, time.Minute), Cost: 1}
	bytesFF, bytesFE := raw(get("/", "name", "v\xff")), raw(get("/", "name", "v\xfe"))
	for _, tt := range []struct {
		name string
		a, b *authv3.CheckRequest
		same bool
	}{
		{"two scripts", get("/", "name", "毛泽东"), get("/", "name", "김정일"), false},
		{"NFC and NFD", get("/", "name", "\u00e9"), get("/", "name", "e\u0301"), false},
		{"raw bytes", bytesFF, bytesFE, false},
		{"bytes that Envoy replaced", get("/", "name", "v!"), get("/", "name", "v!"), true},
		{"map and raw", get("/", "name", "v"), raw(get("/", "name", "v")), true}, // D50
		{"upper-case name", get("/", "name", "v"), raw(get("/", "Name", "v")), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, &countingStore{}, Answer{}, rule)
			f.check(tt.a)
			if same := !allowed(f.check(tt.b)); same != tt.same {
				t.Errorf("one bucket: %v, want %v", same, tt.same)
			}
		})
	}
}

// D51: the gRPC call's own x-forwarded-for is Envoy's.
func TestTheClientAddressIsNotTakenFromTheCall(t *testing.T) {
	client := rules.ClientIP{From: rules.FromHeaders, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Headers: []rules.AddressHeader{{Name: "x-forwarded-for"}}}
	f := newFixtureFor(t, &countingStore{}, Answer{}, client, rules.Rule{Name: "ip", Key: attributes(t, "client_ip"), Limit: logLimit(1, time.Minute), Cost: 1})
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("x-forwarded-for", "172.19.0.3", clientMetadata, "172.19.0.4"))
	for i, want := range []bool{true, false, true} {
		request := get("/", "x-forwarded-for", []string{"203.0.113.9", "203.0.113.9", "203.0.113.10"}[i])
		request.Attributes.Source = from("10.0.0.5")
		if got := f.checkIn(ctx, request); allowed(got) != want {
			t.Errorf("request %d: %v", i, got)
		}
	}
}

func TestEnvoysOwnClientAddressIsReadFromTheCall(t *testing.T) {
	client := rules.ClientIP{From: rules.FromEnvoy}
	f := newFixtureFor(t, &countingStore{}, Answer{}, client, rules.Rule{Name: "ip", Key: attributes(t, "client_ip"), Limit: logLimit(1, time.Minute), Cost: 1})
	for i, tt := range []struct {
		values []string
		want   bool
	}{
		{[]string{"203.0.113.9"}, true},
		{[]string{"203.0.113.9"}, false},
		{[]string{"203.0.113.10"}, true},
		{[]string{"/run/envoy.sock"}, true}, // a Unix socket's listener: unknown
		{[]string{"203.0.113.9", "203.0.113.10"}, true},
		{nil, true},
	} {
		ctx := metadata.NewIncomingContext(context.Background(), metadata.MD{clientMetadata: tt.values})
		if got := f.checkIn(ctx, get("/")); allowed(got) != tt.want {
			t.Errorf("request %d: %v", i, got)
		}
	}
	if n := f.series("ratelimitd_client_unknown_total"); n != 3 {
		t.Errorf("%v without address", n)
	}
}
