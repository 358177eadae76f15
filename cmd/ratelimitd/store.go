package main

import (
	"context"

	"go.uber.org/zap"

	"github.com/ratelimitd/ratelimitd/internal/authz"
	"github.com/ratelimitd/ratelimitd/internal/config"
	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
)

// store is where the buckets are.
type store interface {
	limiter.Store
	Name() string
	Ready() bool    // has answered once
	Trouble() error // why it does not answer, while it does not; nil if there is no reason
	Close() error
}

// stores are the configured store and what lies before and beside it.
type stores struct {
	store               // as it is
	takes limiter.Store // what a request is decided by
	local limiter.Store // what it is decided by when that fails, if the rules say so
	reset func()        // forgets what was remembered under another configuration
}

// openStores returns the configured store. Redis need not be there yet: it is sought until ctx ends.
func openStores(ctx context.Context, c config.Store, m *metrics.Metrics, log *zap.Logger) (*stores, error) {
	memory := limiter.NewMemory(limiter.MemoryOptions{MaxKeys: c.Memory.MaxKeys})
	m.Memory(memory.Keys, func() metrics.Evictions { return metrics.Evictions(memory.Evictions()) })
	local := authz.Measured(memory, m)
	if c.Redis == nil {
		return &stores{alwaysReady{memory}, local, local, func() {}}, nil
	}
	redis, err := limiter.NewRedis(limiter.RedisOptions{
		URL: c.Redis.URL, Mode: c.Redis.Mode, Timeout: c.Redis.Timeout, KeyPrefix: c.Redis.KeyPrefix, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	redis.Start(ctx)
	cache := limiter.NewDenyCache(authz.Measured(redis, m), limiter.DenyCacheOptions{Timeout: c.Redis.Timeout, Refused: m.DenyCacheHit})
	return &stores{redis, cache, local, cache.Reset}, nil
}

// alwaysReady is the memory store as a store that may have to be waited for.
type alwaysReady struct{ *limiter.Memory }

func (alwaysReady) Ready() bool    { return true }
func (alwaysReady) Trouble() error { return nil }
func (alwaysReady) Close() error   { return nil }
