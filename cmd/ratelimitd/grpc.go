package main

import (
	"math"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/ratelimitd/ratelimitd/internal/authz"
)

// streamWorkers is how many checks are answered by goroutines that stay: as many as may wait for Redis at once in a daemon
// that is busy. More than that get goroutines of their own. They take turns, and so more of them than are needed cost a
// little: as likely as not because their stacks do not stay in the processor's caches.
const streamWorkers = 256

// keepaliveMinTime is how often Envoy may ping a connection, also one without requests. More often than that, grpc-go takes
// it for an attack and closes the connection.
const keepaliveMinTime = 10 * time.Millisecond

// newGRPC returns the server that Envoy asks. What each setting gains, and which ones are left as grpc-go has them because
// others gain nothing, is in docs/performance.md.
func newGRPC(checks *authz.Server, ready *readiness) *grpc.Server {
	server := grpc.NewServer(
		grpc.StreamInterceptor(ready.endStreams),
		// A text that is no UTF-8 must not become a gRPC error: Envoy would let the request pass or refuse it unasked.
		grpc.ForceServerCodecV2(authz.Codec()),
		// Envoy's max_request_bytes bounds a check. A smaller bound here would be an error, and so a way around the limits.
		grpc.MaxRecvMsgSize(math.MaxInt32),
		// A new goroutine for each check would have to grow its stack each time.
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
	)
	checks.Register(server)
	healthv1.RegisterHealthServer(server, ready.health)
	reflection.Register(server)
	return server
}
