// Package authz answers Envoy's external authorization checks. It is the only code that knows protobuf: a CheckRequest
// becomes a rules.Request, and what the limits say becomes a CheckResponse.
package authz

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// Options are what a Server is made of. All are required.
type Options struct {
	Store limiter.Store
	// Local is in this process and never fails. It decides for the rules that say so while Store fails. It may be Store itself.
	Local   limiter.Store
	Metrics *metrics.Metrics
	Log     *zap.Logger
}

// Answer is how answers look. The zero value has no limit headers and refuses with 429.
type Answer struct {
	// XRateLimit adds X-RateLimit-Limit, -Remaining and -Reset; RateLimit adds RateLimit-Policy and RateLimit.
	XRateLimit, RateLimit bool
	// Status is the HTTP status of a refusal by a limit: 400 … 599. 0 stands for 429.
	Status int
}

// Snapshot is all that the configuration says about a request. One request is decided by one snapshot.
type Snapshot struct {
	Rules  *rules.Set
	Answer Answer
	// Replicas is how many daemons share each limit while each must decide on its own: ≥ 1. 0 stands for 1.
	Replicas uint32
}

// Server is Envoy's Authorization service. It is safe for concurrent use.
type Server struct {
	store, local limiter.Store
	metrics      *metrics.Metrics
	log          *zap.Logger
	now          func() time.Time // for warnedUnknown and warnedEmpty
	watched      int64            // how many requests of a new snapshot are looked at for headers that its rules read and that never come

	warnedUnknown, warnedEmpty logGate

	current atomic.Pointer[ruleset]
}

// NewServer returns a server that has no rules yet: until Use is called it allows everything.
func NewServer(o Options) *Server {
	s := &Server{
		store:   o.Store,
		local:   o.Local,
		metrics: o.Metrics,
		log:     o.Log,
		now:     time.Now,
		watched: watchedRequests,
	}
	s.Use(Snapshot{Rules: rules.NewSet(nil, rules.ClientIP{})})
	o.Metrics.UnseenHeaders(func() int { return len(s.current.Load().unseen.missing()) })
	return s
}

// Register makes the server answer the checks that come to a gRPC server, which must use Codec.
func (s *Server) Register(on grpc.ServiceRegistrar) { on.RegisterService(&serviceDesc, s) }

// answer decides one request. There is no error: Envoy takes one for a failure of ratelimitd, not for an answer.
func (s *Server) answer(ctx context.Context, c *call) {
	start := time.Now()
	set := s.current.Load()
	c.read(ctx, &set.reads)
	applied := &c.applied
	set.Rules.ApplyTo(applied, &c.request)
	s.report(c, set, applied)

	asked := takeOf(applied)
	err := s.take(ctx, &asked)
	if err != nil {
		asked = s.takeLocally(ctx, asked, set.Replicas)
	}
	verdict := limiter.Judge(asked.hits, asked.decisions)

	o := conclude(applied, asked, verdict, err)
	set.count(applied, &o)
	s.metrics.Answered(o.metric(applied), time.Since(start))
	*c.answer = o.appendResponse(*c.answer, &set.Answer, &c.request)
}

// take asks the store, and does not trouble it for nothing.
func (s *Server) take(ctx context.Context, t *take) (err error) {
	if len(t.hits) == 0 {
		return nil
	}
	t.decisions, err = s.store.Take(ctx, t.hits)
	return err
}

// report counts and logs, at most once a minute or once for all, what an operator should know of a request whatever becomes of it.
func (s *Server) report(c *call, set *ruleset, applied *rules.Applied) {
	if set.unseen.look(&c.request) {
		s.warnUnseen(set)
	}
	if applied.UntrustedHeader {
		s.metrics.UntrustedHeader()
	}
	if applied.ClientUnknown {
		s.metrics.ClientUnknown()
		if s.warnedUnknown.open(s.now()) {
			s.log.Warn("client address unknown: the rules that need it do not apply to such requests")
		}
	}
	if c.empty && s.warnedEmpty.open(s.now()) {
		s.log.Warn("check request that is empty or cannot be decoded: decided as a connection of which nothing is known")
	}
}
