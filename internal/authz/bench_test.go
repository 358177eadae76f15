package authz

import (
	"context"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/mem"
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

// readyStore has its decisions ready: what a store costs is measured elsewhere.
type readyStore []limiter.Decision

func (readyStore) Name() string { return "memory" }

func (s readyStore) Take(context.Context, []limiter.Hit) ([]limiter.Decision, error) { return s, nil }

// BenchmarkCheck is all that is done between gRPC's bytes and gRPC's bytes, but for the store.
func BenchmarkCheck(b *testing.B) {
	list := []rules.Rule{
		{Name: "trending", Match: paths(b, "/api/videos/trending"), Key: attributes(b, "client_ip", "route"), Limit: logLimit(100, time.Minute), Cost: 1},
		{Name: "api-key", Key: attributes(b, "header.x-api-key"), Limit: bucketLimit(10, time.Second, 20), Cost: 1},
	}
	allow := limiter.Decision{Allowed: true, Remaining: 7, ResetAfter: time.Second}
	for _, bb := range []struct {
		name  string
		store readyStore
	}{
		{"allowed", readyStore{allow, allow}},
		{"refused", readyStore{{RetryAfter: time.Second}, allow}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			f := newFixture(b, bb.store, bothFamilies, list...)
			data, err := proto.Marshal(benchRequest())
			if err != nil {
				b.Fatal(err)
			}
			message := mem.BufferSlice{mem.SliceBuffer(data)}
			decode := func(into any) error { return Codec().Unmarshal(message, into) }
			b.ReportAllocs()
			for b.Loop() {
				answer, err := handleCheck(f.Server, context.Background(), decode, nil)
				if err != nil {
					b.Fatal(err)
				}
				message, err := Codec().Marshal(answer)
				if err != nil {
					b.Fatal(err)
				}
				message.Free()
			}
		})
	}
}
