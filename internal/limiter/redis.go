package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// RedisOptions say where the buckets are and how long a take may last.
type RedisOptions struct {
	// URL leads to the server, to the nodes of a cluster or to the sentinels, as go-redis parses it for that Mode. Required.
	URL string
	// Mode is ModeSingle, ModeCluster or ModeSentinel. "" is ModeSingle.
	Mode string
	// Timeout is the whole budget of one take. 0 is DefaultRedisTimeout.
	Timeout time.Duration
	// KeyPrefix begins the key of every bucket, before a colon. "" is DefaultKeyPrefix.
	KeyPrefix string
	// Now replaces Redis's own clock in tests: milliseconds since the Unix epoch. nil asks Redis.
	Now func() int64
	// Logger hears when Redis is lost, why and for how long, when it is back, and when the masters change. nil is silence.
	Logger *zap.Logger
}

// Defaults of RedisOptions.
const (
	DefaultRedisTimeout = 20 * time.Millisecond
	DefaultKeyPrefix    = "rl"
)

// callerMargin is how long before the caller's own deadline a take gives up at most, so that its error is still heard: an
// eighth of the time that is left, where that is less.
const callerMargin = 10 * time.Millisecond

// Redis keeps the buckets in Redis, shared by all who use the same servers, database and key prefix. Each take is one call
// of the script lua.Driver, but where its buckets lie in several slots of a cluster; a few connections to each server carry
// the calls of all takes. Redis may be away when the store is made and at any time later: takes then fail within their
// budget, or at once while it does not answer, and succeed again within a second of its return.
type Redis struct {
	origin  origin
	timeout time.Duration
	prefix  string
	keyHead []byte // of each bucket's name, in RESP
	now     func() int64
	log     *zap.Logger

	servers  servers
	ready    atomic.Bool           // a server has answered once
	answered atomic.Int64          // takes that Redis answered since the last report
	failed   atomic.Int64          // takes that it did not
	trouble  atomic.Pointer[error] // why the last of those failed, or the last attempt to connect or to find the servers
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// NewRedis returns a store that is not connected yet: see Start. Its error says what is wrong with the URL.
func NewRedis(o RedisOptions) (*Redis, error) {
	s := &Redis{timeout: o.Timeout, prefix: o.KeyPrefix, now: o.Now, log: o.Logger}
	if s.timeout <= 0 {
		s.timeout = DefaultRedisTimeout
	}
	if s.prefix == "" {
		s.prefix = DefaultKeyPrefix
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	var err error
	if s.origin, err = parseOrigin(o.Mode, o.URL, s.connectTimeout()); err != nil {
		return nil, err
	}
	s.keyHead = appendKeyHead(nil, s.prefix, s.origin.mode)
	s.servers.init(s)
	return s, nil
}

// Start connects. It returns after the first attempts and goes on in the background, now and whenever a connection is lost,
// until ctx ends or the store is closed. Call it once; until an attempt has succeeded every take fails.
func (s *Redis) Start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	s.servers.start(ctx)
	r := reporter{store: s}
	r.report(time.Now())
	s.running.Go(func() { r.run(ctx) })
}

// Name is what metrics call the store.
func (*Redis) Name() string { return "redis" }

// Take implements Store. It waits for Redis within its budget, the timeout, and never until later than shortly before ctx's
// deadline. A cancelled ctx does not stop it: who resets his requests fast enough would otherwise never pay for them.
//
// Where the buckets of one take lie in several slots of a cluster, it is not one atomic step: all are asked, then spent one
// slot after the other, and given back if one refuses meanwhile. It may refuse a moment too early, and never admits too many.
func (s *Redis) Take(ctx context.Context, hits []Hit) ([]Decision, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	now := time.Now()
	decisions, err := s.decide(hits, now.Add(budget(ctx, now, s.timeout)))
	if err != nil {
		s.fails(err)
		return nil, err
	}
	s.answered.Add(1)
	return decisions, nil
}

func (s *Redis) fails(err error) {
	s.failed.Add(1)
	if !errors.Is(err, errCircuitOpen) { // what came before tells more
		s.trouble.Store(&err)
	}
}

func (s *Redis) decide(hits []Hit, deadline time.Time) ([]Decision, error) {
	if s.origin.mode != ModeCluster {
		return s.take(0, hits, deadline)
	}
	parts := bySlot(hits)
	if len(parts) > 1 {
		return s.spread(hits, parts, deadline)
	}
	decisions, err := s.take(parts[0].slot, hits, deadline)
	if len(hits) > 1 && isHalfMoved(err) {
		return s.spread(hits, parts[0].apart(), deadline)
	}
	return decisions, err
}

// take decides hits that lie in one slot.
func (s *Redis) take(slot uint16, hits []Hit, deadline time.Time) ([]Decision, error) {
	decisions, _, err := s.runDriver(slot, hits, words{}, deadline)
	return decisions, err
}

// budget is for how long a take that begins now may wait: the timeout or the caller's own time, if that is less. A part of that
// is left for the way back.
func budget(ctx context.Context, now time.Time, timeout time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return timeout
	}
	left := deadline.Sub(now)
	return min(timeout, left-min(left/8, callerMargin))
}

// Ready reports whether a server that holds buckets has answered once and was given the scripts, and the others were tried. It
// stays true when all are lost.
func (s *Redis) Ready() bool {
	if !s.ready.Load() && s.servers.greeted() {
		s.ready.Store(true)
	}
	return s.ready.Load()
}

// Trouble is why takes fail, or would, while the store does not answer: on one line and without secrets.
func (s *Redis) Trouble() error {
	_, err := s.cause(time.Now())
	return err
}

// Close ends the background work and closes all connections. Takes fail from then on.
func (s *Redis) Close() error {
	if s.stop != nil {
		s.servers.close()
		s.stop()
		s.running.Wait()
	}
	return nil
}
