package authz

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// allReads is what rules read that read a bit of everything.
func allReads(t testing.TB) rules.Reads {
	key := attributes(t, "header.x-api-key", "header.x-empty", "header.x-text", "extension.tier", "metadata.n:text")
	return rules.NewSet([]rules.Rule{{Name: "a", Key: key, Limit: logLimit(1, time.Minute)}}, rules.ClientIP{From: rules.FromEnvoy}).Reads()
}

// encode is the message in bytes.
func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The checks are those that a real Envoy 1.40 sends.
func TestRequestsAreReadAsTheyAre(t *testing.T) {
	reads := allReads(t)
	const socket = `"source": {"address": {"socketAddress": {"address": "127.0.0.1", "portValue": 44172}}}, "metadataContext": {}`
	loopback := netip.MustParseAddr("127.0.0.1")
	for _, tt := range []struct {
		name, check string
		want        rules.Request
	}{
		{
			"HTTP",
			`{"attributes": {` + socket + `, "request": {"time": "2026-11-30T12:59:57.943456Z", "http": {"id": "10617223990150290358",
				"method": "GET", "path": "/a?b=c", "host": "A.Example.:8443", "scheme": "http", "protocol": "HTTP/1.1",
				"headers": {":authority": "A.Example.:8443", "X-Api-Key": "k1,k2"}}}}}`,
			rules.Request{HTTP: true, Method: "GET", Path: "/a?b=c", Host: "A.Example.:8443", Peer: loopback, EnvoyClient: "::1",
				Headers: []rules.Header{{Name: ":authority", Value: "A.Example.:8443"}, {Name: "x-api-key", Value: "k1,k2"}}},
		},
		{
			"encode_raw_headers",
			`{"attributes": {` + socket + `, "request": {"http": {"method": "GET", "path": "/", "host": "a",
				"headerMap": {"headers": [{"key": "x-api-key", "rawValue": "azH/"}, {"key": "x-api-key", "rawValue": "azI="},
				{"key": "x-empty"}, {"key": "x-text", "value": "v"}]}}}}}`,
			rules.Request{HTTP: true, Method: "GET", Path: "/", Host: "a", Peer: loopback, EnvoyClient: "::1", Headers: []rules.Header{
				{Name: "x-api-key", Value: "k1\xff"}, {Name: "x-api-key", Value: "k2"}, {Name: "x-empty"}, {Name: "x-text", Value: "v"}}},
		},
		{
			"what Envoy's configuration and other filters say",
			`{"attributes": {"source": {"principal": "spiffe://lab/tenant-a"}, "contextExtensions": {"tier": "gold"},
				"metadataContext": {"filterMetadata": {"envoy.filters.http.jwt_authn": {"payload": {"plan": "pro"}}}}}}`,
			rules.Request{EnvoyClient: "::1", Principal: "spiffe://lab/tenant-a", Extensions: map[string]string{"tier": "gold"}},
		},
		{"L4", `{"attributes": {` + socket + `}}`, rules.Request{Peer: loopback, EnvoyClient: "::1"}},
		{"request without HTTP", `{"attributes": {` + socket + `, "request": {}}}`, rules.Request{Peer: loopback, EnvoyClient: "::1"}},
		{"Unix socket", `{"attributes": {"source": {"address": {"pipe": {"path": "/run/l.sock"}}}}}`, rules.Request{EnvoyClient: "::1"}},
		{"no address", `{"attributes": {"source": {"address": {"socketAddress": {"address": "x"}}}}}`, rules.Request{EnvoyClient: "::1"}},
		{"nothing", `{}`, rules.Request{EnvoyClient: "::1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs(clientMetadata, "::1"))
			check := fromJSON(t, tt.check, &authv3.CheckRequest{})
			c := new(call)
			c.data = encode(t, check)
			c.read(ctx, &reads)
			got := c.request
			slices.SortStableFunc(got.Headers, func(a, b rules.Header) int { return cmp.Compare(a.Name, b.Name) })
			if !slices.Equal(got.Headers, tt.want.Headers) {
				t.Errorf("headers %q", got.Headers)
			}
			if !maps.Equal(got.Extensions, tt.want.Extensions) || got.Principal != tt.want.Principal {
				t.Errorf("extensions %v of %q", got.Extensions, got.Principal)
			}
			got.Headers, tt.want.Headers = nil, nil
			if g, w := got, tt.want; g.HTTP != w.HTTP || g.Method != w.Method || g.Path != w.Path || g.Host != w.Host || g.Peer != w.Peer || g.EnvoyClient != w.EnvoyClient {
				t.Errorf("got %+v, want %+v", g, w)
			}
		})
	}
}

func TestScalarsOfTheMetadataAreReadAsText(t *testing.T) {
	const check = `{"attributes": {"metadataContext": {"filterMetadata": {"n": {"text": "a b", "empty": "", "whole": 5, "big": 1e21, "part": 0.25,
		"huge": 18446744073709551616, "negative": -5, "nan": "NaN", "yes": true, "no": false, "null": null, "list": ["a"], "below": {"plan": {"name": "pro"}}}}}}}`
	request := requestOf(fromJSON(t, check, &authv3.CheckRequest{}))
	for path, want := range map[string]string{
		"n:text": "a b", "n:empty": "", "n:whole": "5", "n:big": "1000000000000000000000", "n:part": "0.25", "n:huge": "18446744073709552000",
		"n:negative": "-5", "n:nan": "NaN", "n:yes": "true", "n:no": "false", "n:below.plan.name": "pro",
		"n:null": "-", "n:list": "-", "n:below": "-", "n:below.plan": "-", "n:below.plan.name.x": "-", "n:text.x": "-", "n:none": "-", "m:text": "-",
	} {
		at, err := rules.ParseMetadataPath(path)
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := request.Metadata.Value(at); ok != (want != "-") || ok && text != want {
			t.Errorf("%s is %q, %v; want %q", path, text, ok, want)
		}
	}
}
