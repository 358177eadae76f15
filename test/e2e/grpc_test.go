package e2e

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// D107: a gRPC client sees RESOURCE_EXHAUSTED with RetryInfo, never UNAVAILABLE, which it would retry at once.
func TestAGRPCClientSeesResourceExhaustedWithRetryInfo(t *testing.T) {
	harness.Binary(t, "envoy")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	d := harness.Serve(t, ratelimitd, "", `
rules:
- {name: a, key: [client_ip], limit: 2/1m}
- {name: blocked, action: deny, match: {headers: {x-blocked: present}}}`)
	envoy := harness.Envoy(t, bootstrap(t, d.Addr, l.Addr().String(), sent(t, d)))
	conn, err := grpc.NewClient("passthrough:///"+envoy.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	call := func(headers ...string) (*status.Status, metadata.MD) {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(context.Background(), headers...), 10*time.Second)
		defer cancel()
		var header, trailer metadata.MD
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
		return status.Convert(err), metadata.Join(header, trailer)
	}
	for range 2 {
		if s, md := call(); s.Code() != codes.OK || len(md["x-ratelimit-remaining"]) != 1 {
			t.Fatalf("allowed: %v %v", s, md)
		}
	}
	s, md := call()
	if s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 {
		t.Fatalf("refused: %v %v %v", s.Code(), s.Message(), s.Details())
	}
	info, ok := s.Details()[0].(*errdetails.RetryInfo)
	wait := info.GetRetryDelay().AsDuration()
	if !ok || wait < time.Second || wait > time.Minute {
		t.Errorf("details %v", s.Details())
	}
	if want := "rate limited, retry in " + md["retry-after"][0] + " s"; s.Message() != want || wait.String() != (wait.Truncate(time.Second)).String() {
		t.Errorf("message %q, want %q", s.Message(), want)
	}
	if s, _ := call("x-blocked", "1"); s.Code() != codes.PermissionDenied || s.Message() != "denied" {
		t.Errorf("a deny rule: %v", s)
	}
}
