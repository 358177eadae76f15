package limiter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/zap"

	"github.com/ratelimitd/ratelimitd/lua"
)

const (
	// minConnectTimeout is the least that bounds one attempt to connect. A handshake is several round trips, which must not
	// be held to the budget of a take; and Redis is to be found again within a second.
	minConnectTimeout = 500 * time.Millisecond
	// reconnectPause lies between the beginnings of two attempts.
	reconnectPause = 100 * time.Millisecond
	// reportInterval is how often the log may hear that Redis was lost or is back.
	reportInterval = time.Second
)

// connectTimeout bounds one attempt to connect.
func (s *Redis) connectTimeout() time.Duration { return max(minConnectTimeout, 2*s.timeout) }

// The client would print a line for each connection that it does not get, through a logger that the whole process shares.
func init() { logging.Disable() }

// Start connects. It returns after the first attempt and goes on in the background, now and whenever a connection is lost,
// until ctx ends or the store is closed. Call it once; until an attempt has succeeded every take fails.
func (s *Redis) Start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	first := make(chan struct{}, len(s.lanes))
	for _, l := range s.lanes {
		s.running.Go(func() { l.run(ctx, first) })
	}
	select {
	case <-first:
	case <-ctx.Done():
	}
	r := reporter{store: s}
	r.report()
	s.running.Go(func() { r.run(ctx) })
}

// run keeps the lane connected until ctx ends. It tells tried when the first attempt is over. Attempts begin a pause apart
// at least, also where connections are made and lost at once.
func (l *lane) run(ctx context.Context, tried chan<- struct{}) {
	defer l.busySince.Store(down)
	for first := true; ctx.Err() == nil; first = false {
		pause := time.After(reconnectPause)
		client, err := l.store.connect(ctx)
		if err == nil {
			l.busySince.Store(idle)
		} else {
			l.busySince.Store(down)
			l.store.dismiss()
		}
		if first {
			tried <- struct{}{}
		}
		if err == nil {
			l.serve(ctx, client)
			_ = client.Close()
		}
		select {
		case <-ctx.Done():
		case <-pause:
		}
	}
}

// probe asks about a bucket that no rule has.
var probe = Hit{Key: Key([]byte("ratelimitd probe")), Limit: Limit{Algorithm: SlidingLog, Quota: 1, Window: time.Second}}

// connect makes one attempt to reach Redis, to load the script, to run it and to write: a Redis that cannot, such as a
// replica, is as good as away.
func (s *Redis) connect(ctx context.Context) (*redis.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, s.connectTimeout())
	defer cancel()
	options := *s.options
	options.Dialer = dialOnce(redis.NewDialer(s.options))
	client := redis.NewClient(&options)
	err := client.ScriptLoad(ctx, lua.Driver).Err()
	if err == nil {
		look := redis.NewIntSliceCmd(ctx, s.arguments([]Hit{probe}, time.Now())...)
		_ = client.Process(ctx, look) // the command keeps the error
		err = look.Err()
	}
	if err == nil {
		err = client.Set(ctx, s.key(probe.Key), "", time.Millisecond).Err() // gone at once
	}
	if err != nil {
		_ = client.Close()
		err = fmt.Errorf("connect: %w", err)
		s.trouble.Store(&err)
		return nil, err
	}
	s.ready.Store(true)
	return client, nil
}

// dialOnce makes the client's only connection: a lost one must not be replaced within the budget of a take.
func dialOnce(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	var dialled atomic.Bool
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, net.ErrClosed
		}
		return dial(ctx, network, addr)
	}
}

// lostReplies are the beginnings of error replies after which a new connection may be better: the address may lead to
// another server by now, or the password be another.
var lostReplies = []string{"READONLY", "MASTERDOWN", "LOADING", "NOAUTH", "WRONGPASS"}

// keepsConnection reports whether the connection on which a command ended so is still good.
func keepsConnection(err error) bool {
	var reply redis.Error
	if err == nil || !errors.As(err, &reply) {
		return err == nil
	}
	return !slices.ContainsFunc(lostReplies, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

// reporter tells the log what becomes of Redis.
type reporter struct {
	store   *Redis
	failing bool // what the log heard last
}

// run reports until ctx ends.
func (r *reporter) run(ctx context.Context) {
	reports := time.NewTicker(reportInterval)
	defer reports.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reports.C:
			r.report()
		}
	}
}

// report goes by what takes got since the last report and, without any, by whether there is a connection.
func (r *reporter) report() {
	s := r.store
	failed, answered := s.failed.Swap(0), s.answered.Swap(0)
	fails := failed > 0 || answered == 0 && !s.answers(time.Now())
	if fails == r.failing {
		return
	}
	r.failing = fails
	if !fails {
		s.log.Info("redis answers again")
		return
	}
	err := errCircuitOpen
	if trouble := s.trouble.Load(); trouble != nil {
		err = *trouble
	}
	s.log.Warn("redis fails: requests are decided by on_store_error", zap.Int64("failed", failed),
		zap.Int64("answered", answered), zap.String("reason", ErrorReason(err)), zap.Error(err))
}

// Ready reports whether Redis has answered once and was given the script. It stays true when Redis is lost.
func (s *Redis) Ready() bool { return s.ready.Load() }

// Close ends the background work and closes all connections. Takes fail from then on.
func (s *Redis) Close() error {
	if s.stop != nil {
		s.stop()
		s.running.Wait()
	}
	return nil
}
