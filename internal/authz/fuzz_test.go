package authz

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// byteStore decides as some bytes say, or fails.
type byteStore struct{ script []byte }

func (s *byteStore) Name() string { return "memory" }

func (s *byteStore) Take(_ context.Context, hits []limiter.Hit) ([]limiter.Decision, error) {
	decisions := make([]limiter.Decision, len(hits))
	for i, h := range hits {
		var b byte
		if len(s.script) > 0 {
			b = s.script[i%len(s.script)]
		}
		wait := time.Duration(b) * 37 * time.Millisecond
		switch {
		case b == 255:
			return nil, errors.New("gone")
		case h.Limit.NeverPasses(h.Cost):
			decisions[i] = limiter.Decision{RetryAfter: limiter.Never}
		case b%2 == 1:
			decisions[i] = limiter.Decision{RetryAfter: wait}
		default:
			decisions[i] = limiter.Decision{Allowed: true, Remaining: min(uint32(b), h.Limit.Capacity()), ResetAfter: wait}
		}
	}
	return decisions, nil
}

// everyRule has each kind of rule, condition and key.
func everyRule(t testing.TB) []rules.Rule {
	host, err := rules.ParseHost("*.example.org")
	if err != nil {
		t.Fatal(err)
	}
	limit := logLimit(9, 1500*time.Millisecond)
	refuse := paths(t, "/f/**")
	place, err := rules.ParseMetadataPath("n:a.b")
	if err != nil {
		t.Fatal(err)
	}
	stated := func(attribute string) *rules.CostFrom {
		return &rules.CostFrom{Attribute: attributes(t, attribute)[0], Min: 0, Max: 1000}
	}
	return []rules.Rule{
		{Name: "office", Action: rules.Allow, Match: rules.Match{ClientIPs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/25")}}},
		{Name: "try-deny", Action: rules.Deny, Shadow: true},
		{Name: "bad-bot", Action: rules.Deny, Match: rules.Match{Headers: []rules.HeaderCondition{{Name: "user-agent", Values: []string{"bot"}}}}},
		{Name: "all", Limit: limit, Cost: 1},
		{Name: "try", Key: attributes(t, "client_ip"), Limit: logLimit(0, time.Second), Cost: 1, Shadow: true},
		{Name: "ip", Key: attributes(t, "client_ip", "route"), Match: paths(t, "/api/*", "~^/v[0-9]+"), Limit: bucketLimit(3, time.Minute, 7), Cost: 2},
		{Name: "key", Key: attributes(t, "header.x-api-key", "method", "host", "path"), Limit: limit, Cost: 1},
		{Name: "skip", Key: attributes(t, "header.x-skip"), Limit: limit, OnMissingKey: rules.SkipRule},
		{Name: "shared", Key: attributes(t, "header.x-shared"), Limit: limit, Cost: 1, OnMissingKey: rules.ShareBucket, Match: rules.Match{Methods: []string{"POST"}}},
		{Name: "must", Key: attributes(t, "header.x-must"), Limit: limit, Cost: 1, OnMissingKey: rules.RefuseMissing, Match: paths(t, "/must")},
		{Name: "try-must", Key: attributes(t, "header.x-must"), Limit: limit, Cost: 1, OnMissingKey: rules.RefuseMissing, Shadow: true},
		{Name: "host", Match: rules.Match{Hosts: []rules.HostPattern{host}}, Limit: limit, Cost: 1},
		{Name: "closed", Match: refuse, Limit: limit, Cost: 1, OnStoreError: rules.Refuse},
		{Name: "all-kinds", Key: attributes(t, "query.q", "cookie.sid", "principal", "extension.tier", "metadata.n:a.b"), Limit: limit, Cost: 1,
			CostFrom: stated("query.cost"), OnMissingKey: rules.ShareBucket, Overrides: []rules.Override{
				{Match: rules.Match{Query: []rules.QueryCondition{{Name: "q", Values: []string{"v"}}}}, Limit: logLimit(2, 1500*time.Millisecond), Cost: 3},
				{Match: rules.Match{Extensions: []rules.ExtensionCondition{{Name: "tier", Values: []string{"gold"}}}}, Limit: limit, CostFrom: stated("cookie.cost")},
				{Match: rules.Match{Metadata: []rules.MetadataCondition{{At: place, Values: []string{"1"}}}}, Limit: limit, CostFrom: stated("metadata.n:cost")},
			}},
		{Name: "never", Match: paths(t, "/never/**"), Limit: limit, Cost: 10},
	}
}

// FuzzCheck sends bytes the way gRPC does, through codec and server: whatever they are, Envoy gets an answer that means
// what it says. script is what the store does.
func FuzzCheck(f *testing.F) {
	seeds := []*authv3.CheckRequest{
		{}, get("/"), get("/f/x"), get("/never"), get("/must"), get("/api/x", "x-api-key", "k"),
		get("/", "content-type", "application/grpc"), get("/", "content-type", "application/grpc-web+proto\r\nx: y"),
		get("/", "user-agent", "bot"), get("/", "x-forwarded-for", "203.0.113.200, x"), raw(get("/v1", "x-skip", "\xff")),
		{Attributes: &authv3.AttributeContext{Source: from("203.0.113.9")}},
		get("/?q=v&cost=5", "cookie", "sid=a; cost=7"), get("/?q=%zz&%71=+&cost=-1", "cookie", "sid=a,sid=b; =;;cost"),
		fromJSON(f, `{"attributes": {"source": {"principal": "p"}, "contextExtensions": {"tier": "gold"},
			"metadataContext": {"filterMetadata": {"n": {"a": {"b": 1}, "cost": 1e30}}}}}`, &authv3.CheckRequest{}),
	}
	for _, seed := range seeds {
		data, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		for _, script := range []string{"\x00", "\x03", "\xff", "\x02\x1b\x04"} {
			f.Add(data, []byte(script))
		}
	}
	f.Add(nested(f, 3), []byte{1})
	f.Add([]byte("\xff\xff"), []byte{0})

	store := &byteStore{}
	client := rules.ClientIP{From: rules.FromHeaders, Trusted: []netip.Prefix{netip.MustParsePrefix("203.0.113.9/32")},
		Headers: []rules.AddressHeader{{Name: "x-real-ip"}, {Name: "x-forwarded-for"}}}
	fixture := newFixtureFor(f, store, bothFamilies, client, everyRule(f)...)
	f.Fuzz(func(t *testing.T, data, script []byte) {
		store.script = script
		here := *fixture
		here.t = t
		response := here.checkBytes(t.Context(), data)
		if err := faults(response); err != nil {
			t.Errorf("%v in %v", err, response)
		}
	})
}

var tItem = regexp.MustCompile(`;t=(\d+)`)

// faults finds what is wrong with an answer, whatever it answers.
func faults(response *authv3.CheckResponse) error {
	if _, err := proto.Marshal(response); err != nil {
		return err
	}
	ok, denied := response.GetOkResponse(), response.GetDeniedResponse()
	switch code := response.GetStatus().GetCode(); {
	case response.GetStatus() == nil:
		return errors.New("no status")
	case code == 0 && (ok == nil || metadataOf(response)["decision"] != "allow"):
		return errors.New("status 0 is no allow")
	case code != 0 && (code != 8 || denied == nil || metadataOf(response)["decision"] != "deny"):
		return errors.New("another status is no deny")
	}
	for _, list := range [][]*corev3.HeaderValueOption{ok.GetResponseHeadersToAdd(), denied.GetHeaders()} {
		for _, h := range list {
			if !isPrintable(h.GetHeader().GetValue()) || h.GetHeader().GetValue() == "" {
				return fmt.Errorf("header %v", h)
			}
		}
	}
	return retryAfterFaults(response)
}

// retryAfterFaults compares all that an answer says about the wait.
func retryAfterFaults(response *authv3.CheckResponse) error {
	text := headerOf(response, "retry-after")
	wait, err := strconv.Atoi(text)
	told, inMetadata := metadataOf(response)["retry_after_s"]
	switch {
	case text == "":
		if inMetadata {
			return errors.New("a wait in the metadata alone")
		}
		return nil
	case err != nil, wait < 1, allowed(response), told != float64(wait):
		return fmt.Errorf("retry-after %q, metadata %v", text, told)
	}
	times := []string{headerOf(response, "x-ratelimit-reset")}
	for _, match := range tItem.FindAllStringSubmatch(headerOf(response, "ratelimit"), -1) {
		times = append(times, match[1])
	}
	for _, t := range times {
		if n, err := strconv.Atoi(t); t != "" && (err != nil || n > wait) {
			return fmt.Errorf("retry-after %d is before %q", wait, t)
		}
	}
	body := regexp.MustCompile(`^\{"error":"[a-z_]+","retry_after_seconds":` + text + `\}$`)
	if grpc := headerOf(response, "grpc-status") != ""; !grpc && !body.MatchString(response.GetDeniedResponse().GetBody()) ||
		grpc && response.GetDeniedResponse().GetBody() != "" {
		return fmt.Errorf("body %q", response.GetDeniedResponse().GetBody())
	}
	return nil
}
