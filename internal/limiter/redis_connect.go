package limiter

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/zap"

	"github.com/ratelimitd/ratelimitd/lua"
)

const (
	// connectTimeout bounds one attempt to connect, whatever the budget of a take: a slow handshake succeeds, and Redis is
	// found again within a second.
	connectTimeout = 500 * time.Millisecond
	// reconnectPause lies between two attempts.
	reconnectPause = 100 * time.Millisecond
	// reportInterval is how often the log may hear that Redis was lost or is back.
	reportInterval = time.Second
)

// The client would print a line for each connection that it does not get, through a logger that the whole process shares.
func init() { logging.Disable() }

// Start connects. It returns after the first attempt, which lasts half a second at most, and goes on in the background, now
// and whenever a connection is lost, until ctx ends or the store is closed. Call it once; until an attempt has succeeded
// every take fails.
func (s *Redis) Start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	first := make(chan struct{}, len(s.lanes))
	for _, l := range s.lanes {
		s.running.Go(func() { l.run(ctx, first) })
	}
	<-first
	reported := s.report(false)
	s.running.Go(func() { s.keepReporting(ctx, reported) })
}

// run keeps the lane connected until ctx ends. It tells tried when the first attempt is over.
func (l *lane) run(ctx context.Context, tried chan<- struct{}) {
	defer l.busySince.Store(down)
	for first := true; ctx.Err() == nil; first = false {
		client, err := l.store.connect(ctx)
		if err == nil {
			l.busySince.Store(idle)
		} else {
			l.busySince.Store(down)
		}
		if first {
			tried <- struct{}{}
		}
		if err == nil {
			l.serve(ctx, client)
			_ = client.Close()
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectPause):
		}
	}
}

// probe asks about a bucket that nobody spends from.
var probe = Hit{Limit: Limit{Algorithm: SlidingLog, Quota: 1, Window: time.Second}}

// connect makes one attempt to reach Redis, to load the script and to run it: a Redis that cannot is as good as away.
func (s *Redis) connect(ctx context.Context) (*redis.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	client := redis.NewClient(s.options)
	err := client.ScriptLoad(ctx, lua.Driver).Err()
	if err == nil {
		look := redis.NewIntSliceCmd(ctx, s.arguments([]Hit{probe})...)
		_ = client.Process(ctx, look) // the command keeps the error
		err = look.Err()
	}
	if err != nil {
		_ = client.Close()
		err = fmt.Errorf("connect: %w", err)
		s.failing.Store(&err)
		return nil, err
	}
	s.failing.Store(nil)
	s.ready.Store(true)
	return client, nil
}

// note learns from what became of a call and reports whether its connection is still good. A server that has become a
// replica keeps its connections open: the address may lead to the new master by now.
func (s *Redis) note(err error) (good bool) {
	if err == nil {
		if s.failing.Load() != nil {
			s.failing.Store(nil)
		}
		return true
	}
	s.failing.Store(&err)
	switch ErrorReason(err) {
	case "timeout", "refused", "connection", "readonly":
		return false
	}
	return true
}

// keepReporting tells the log what becomes of Redis until ctx ends; failing is what it heard last.
func (s *Redis) keepReporting(ctx context.Context, failing bool) {
	reports := time.NewTicker(reportInterval)
	defer reports.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reports.C:
			failing = s.report(failing)
		}
	}
}

// report tells the log when takes begin to fail and when they succeed again; failing is what it said last.
func (s *Redis) report(failing bool) (now bool) {
	err := s.failing.Load()
	switch {
	case err != nil && !failing:
		s.log.Warn("redis fails: requests are decided by on_store_error", zap.String("reason", ErrorReason(*err)), zap.Error(*err))
	case err == nil && failing:
		s.log.Info("redis answers again")
	}
	return err != nil
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
