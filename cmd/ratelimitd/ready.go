package main

import (
	"context"
	"sync"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// askStoreEvery is how often a store that has never answered is asked whether it has.
const askStoreEvery = 50 * time.Millisecond

// readiness is whether this process wants requests: from when all is up until it is told to stop, whatever the store does
// in between, because a store's outage is the failure policy's affair and not the orchestrator's. It speaks over HTTP
// and as gRPC health.
type readiness struct {
	health *health.Server
	store  store

	mu     sync.Mutex
	reason string // why not: a constant below; "" when ready

	watches    context.Context // ends with endWatches
	endWatches context.CancelFunc
}

func newReadiness(store store) *readiness {
	r := &readiness{health: health.NewServer(), store: store, reason: waiting}
	r.watches, r.endWatches = context.WithCancel(context.Background())
	r.serving(healthv1.HealthCheckResponse_NOT_SERVING)
	return r
}

// whyNot returns the reason for not being ready, "" when ready.
func (r *readiness) whyNot() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason != waiting {
		return r.reason
	}
	reason := "waiting for the first answer of " + r.store.Name()
	if err := r.store.Trouble(); err != nil {
		reason += ": " + err.Error()
	}
	return reason
}

// begin makes the process ready as soon as the store has answered once. It returns then, or when ctx ends.
func (r *readiness) begin(ctx context.Context) {
	tick := time.NewTicker(askStoreEvery)
	defer tick.Stop()
	for !r.store.Ready() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	r.become("")
}

// end makes the process not ready for good.
func (r *readiness) end() { r.become(stopping) }

// Why the process may not be ready.
const (
	waiting  = "waiting" // for the store
	stopping = "stopping"
)

func (r *readiness) become(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason == stopping {
		return
	}
	r.reason = reason
	if reason == "" {
		r.serving(healthv1.HealthCheckResponse_SERVING)
	} else {
		r.serving(healthv1.HealthCheckResponse_NOT_SERVING)
	}
}

func (r *readiness) serving(status healthv1.HealthCheckResponse_ServingStatus) {
	r.health.SetServingStatus("", status)
	r.health.SetServingStatus(authv3.Authorization_ServiceDesc.ServiceName, status)
}

// endStreams ends a stream with endWatches. The only streams are those of health and reflection, which clients may leave
// open for ever; a graceful stop would wait for them.
func (r *readiness) endStreams(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(r.watches, cancel)()
	return handler(service, endingStream{stream, ctx})
}

type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s endingStream) Context() context.Context { return s.ctx }

// RecvMsg ends with the stream's context too: reflection waits in it for ever.
func (s endingStream) RecvMsg(m any) error {
	received := make(chan error, 1)
	go func() { received <- s.ServerStream.RecvMsg(m) }()
	select {
	case err := <-received:
		return err
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}
