package limiter

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/zap"

	"github.com/ratelimitd/ratelimitd/lua"
)

const (
	// connectTimeout bounds one attempt to connect and load the script. It is longer than the budget of a take, so that a
	// slow handshake succeeds, and short enough to find Redis again within a second.
	connectTimeout = 500 * time.Millisecond
	// reconnectPause lies between two attempts.
	reconnectPause = 100 * time.Millisecond
	// maxFailures is how many takes in a row fail before Redis counts as lost.
	maxFailures = 5
	// reportInterval is how often the log may hear that Redis was lost or is back.
	reportInterval = time.Second
)

// The client would print a line for each connection that it does not get, through a logger that the whole process shares.
func init() { logging.Disable() }

// Start connects and loads the script. It returns after the first attempt, which lasts half a second at most, and goes on in
// the background, now and whenever Redis is lost, until ctx ends or the store is closed. Call it once; until an attempt
// has succeeded every take fails.
func (s *Redis) Start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	s.stopped = make(chan struct{})
	s.connect(ctx)
	reported := s.report(false)
	go s.keepConnected(ctx, reported)
}

// keepConnected replaces a client that was given up, and tells the log what became of Redis.
func (s *Redis) keepConnected(ctx context.Context, reported bool) {
	defer close(s.stopped)
	reports := time.NewTicker(reportInterval)
	defer reports.Stop()
	pause := reconnectPause
	for {
		var retry <-chan time.Time
		if s.client.Load() == nil {
			retry = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return
		case client := <-s.lost:
			_ = client.Close()
			pause = 0
		case <-retry:
			s.connect(ctx)
			pause = reconnectPause
		case <-reports.C:
			reported = s.report(reported)
		}
	}
}

// connect makes one attempt to reach Redis and to load the script. It does so with a new client: connections of an old one
// may be dead without knowing it, and each would cost a take its whole budget.
func (s *Redis) connect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	client := redis.NewClient(s.options)
	if err := client.ScriptLoad(ctx, lua.Driver).Err(); err != nil {
		_ = client.Close()
		s.failing.Store(&err)
		return
	}
	s.failures.Store(0)
	s.failing.Store(nil)
	s.ready.Store(true)
	s.client.Store(client)
}

// note learns from the outcome of a take. After a few failures in a row Redis is asked no more until connect has reached
// it, unless it answers in time, be it with an error.
func (s *Redis) note(client *redis.Client, err error) {
	if err == nil {
		if s.failures.Load() != 0 {
			s.failures.Store(0)
			s.failing.Store(nil)
		}
		return
	}
	if s.client.Load() != client || s.failures.Add(1) < maxFailures {
		return
	}
	s.failing.Store(&err)
	switch ErrorReason(err) {
	case "timeout", "refused", "connection":
		if s.client.CompareAndSwap(client, nil) {
			s.lost <- client
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
		<-s.stopped
	}
	if client := s.client.Swap(nil); client != nil {
		return client.Close()
	}
	select {
	case client := <-s.lost:
		return client.Close()
	default:
		return nil
	}
}
