package authz

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// standing is a real store whose clock stands.
func standing() Store {
	return limiter.NewMemory(limiter.MemoryOptions{Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
}

// D12: a look spends nothing and is refused where one more unit would be.
func TestACostOfZeroOnlyLooks(t *testing.T) {
	rule := rules.Rule{Name: "r", Limit: logLimit(3, time.Minute), Cost: 1,
		CostFrom: &rules.CostFrom{Attribute: attributes(t, "header.x-cost")[0], Min: 0, Max: 10}}
	f := newFixture(t, standing(), bothFamilies, rule)
	for i, step := range []struct {
		request   *authv3.CheckRequest
		allowed   bool
		remaining string
	}{
		{get("/"), true, "2"},
		{get("/"), true, "1"},
		{get("/", "x-cost", "0"), true, "1"},
		{get("/"), true, "0"},
		{get("/", "x-cost", "0"), false, "0"},
	} {
		got := f.check(step.request)
		if allowed(got) != step.allowed || headerOf(got, "x-ratelimit-remaining") != step.remaining {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

// D13: no cost that cannot be read raises what is left or is an error.
func TestAnInvalidCostCountsAsTheDefaultAndInAMetric(t *testing.T) {
	rule := rules.Rule{Name: "r", Limit: logLimit(100, time.Minute), Cost: 2,
		CostFrom: &rules.CostFrom{Attribute: attributes(t, "metadata.n:cost")[0], Min: 1, Max: 5}}
	f := newFixture(t, standing(), bothFamilies, rule)
	left, invalid := 100, 0.0
	for _, step := range []struct {
		cost    any // nil: none
		spent   int
		invalid float64
	}{
		{-5, 2, 1}, {1.5, 2, 1}, {"abc", 2, 1}, {"NaN", 2, 1}, {math.NaN(), 2, 1}, {math.Inf(1), 2, 1}, {math.Pow(2, 64), 2, 1},
		{"18446744073709551616", 2, 1}, {true, 2, 1}, {"", 2, 1}, {nil, 2, 0}, {3, 3, 0}, {"4", 4, 0}, {1e18, 5, 0}, {0, 1, 0},
	} {
		request := get("/")
		if step.cost != nil {
			fields, err := structpb.NewStruct(map[string]any{"cost": step.cost})
			if err != nil {
				t.Fatal(err)
			}
			request.Attributes.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"n": fields}}
		}
		left, invalid = left-step.spent, invalid+step.invalid
		got := f.check(request)
		if !allowed(got) || headerOf(got, "x-ratelimit-remaining") != fmt.Sprint(left) {
			t.Errorf("cost %v: %v, want %d left", step.cost, got, left)
		}
		if n := f.series("ratelimitd_invalid_cost_total", "rule", "r"); n != invalid {
			t.Errorf("cost %v: %v invalid, want %v", step.cost, n, invalid)
		}
	}
}

func TestAnOverrideSpeaksForTheRuleAndSpendsFromItsBucket(t *testing.T) {
	rule := rules.Rule{Name: "r", Limit: logLimit(2, time.Minute), Cost: 1, Overrides: []rules.Override{{
		Match: rules.Match{Extensions: []rules.ExtensionCondition{{Name: "plan", Values: []string{"pro"}}}},
		Limit: logLimit(9, time.Minute), Cost: 3,
	}}}
	f := newFixture(t, standing(), bothFamilies, rule)
	pro := get("/")
	pro.Attributes.ContextExtensions = map[string]string{"plan": "pro"}
	for i, step := range []struct {
		request         *authv3.CheckRequest
		policy, limited string
	}{
		{get("/"), `"r";q=2;w=60`, `"r";r=1;t=60`},
		{pro, `"r";q=9;w=60`, `"r";r=5;t=60`},
		{get("/"), `"r";q=2;w=60`, `"r";r=0;t=60`}, // four units are spent of two
		{pro, `"r";q=9;w=60`, `"r";r=2;t=60`},
		{pro, `"r";q=9;w=60`, `"r";r=0;t=60`},
	} {
		got := f.check(step.request)
		if headerOf(got, "ratelimit-policy") != step.policy || headerOf(got, "ratelimit") != step.limited {
			t.Errorf("step %d: %v", i, headerMap(got))
		}
		if metadataOf(got)["rule"] != "r" {
			t.Errorf("step %d: metadata %v", i, metadataOf(got))
		}
	}
}
