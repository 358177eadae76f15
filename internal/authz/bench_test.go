package authz

import (
	"context"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// benchRequest is a check as a browser behind a bare Envoy causes it.
func benchRequest() *authv3.CheckRequest {
	return get("/api/videos/trending?page=2",
		":authority", "api.example.com", ":method", "GET", ":scheme", "https", "accept", "*/*",
		"accept-encoding", "gzip, deflate, br", "accept-language", "en-GB,en;q=0.9", "user-agent", "Mozilla/5.0 (X11; Linux x86_64)",
		"x-forwarded-proto", "https", "x-request-id", "75d6238e-0000-4000-8000-000000000000", "x-api-key", "0123456789abcdef")
}

func BenchmarkCheck(b *testing.B) {
	list := []rules.Rule{
		{Name: "trending", Match: paths(b, "/api/videos/trending"), Key: attributes(b, "client_ip", "route"), Limit: logLimit(100, time.Minute), Cost: 1},
		{Name: "api-key", Key: attributes(b, "header.x-api-key"), Limit: bucketLimit(10, time.Second, 20), Cost: 1},
	}
	allow := limiter.Decision{Allowed: true, Remaining: 7, ResetAfter: time.Second}
	for _, bb := range []struct {
		name  string
		store scriptedStore
	}{
		{"allowed", scriptedStore{"trending": allow, "api-key": allow}},
		{"refused", scriptedStore{"trending": {RetryAfter: time.Second}, "api-key": allow}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			f := newFixture(b, bb.store, bothFamilies, list...)
			request := benchRequest()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Check(context.Background(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWire is what gRPC adds around Check: decoding the request and encoding the answer.
func BenchmarkWire(b *testing.B) {
	f := newFixture(b, &countingStore{}, bothFamilies, rules.Rule{Name: "a", Key: attributes(b, "client_ip"), Limit: logLimit(100, time.Minute), Cost: 0})
	data, err := proto.Marshal(benchRequest())
	if err != nil {
		b.Fatal(err)
	}
	response := f.check(benchRequest())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(data); err != nil {
			b.Fatal(err)
		}
		if _, err := Codec().Marshal(response); err != nil {
			b.Fatal(err)
		}
	}
}
