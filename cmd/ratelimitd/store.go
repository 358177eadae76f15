package main

import (
	"context"

	"go.uber.org/zap"

	"github.com/ratelimitd/ratelimitd/internal/config"
	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
)

// store is where the buckets are.
type store interface {
	limiter.Store
	Name() string
	Ready() bool // has answered once
	Close() error
}

// openStore returns the configured store. Redis need not be there yet: it is sought until ctx ends.
func openStore(ctx context.Context, c config.Store, m *metrics.Metrics, log *zap.Logger) (store, error) {
	if c.Redis == nil {
		memory := limiter.NewMemory(limiter.MemoryOptions{MaxKeys: c.Memory.MaxKeys})
		m.Memory(memory.Keys, func() metrics.Evictions { return metrics.Evictions(memory.Evictions()) })
		return alwaysReady{memory}, nil
	}
	redis, err := limiter.NewRedis(limiter.RedisOptions{
		URL: c.Redis.URL, Timeout: c.Redis.Timeout, KeyPrefix: c.Redis.KeyPrefix, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	redis.Start(ctx)
	return redis, nil
}

// alwaysReady is the memory store as a store that may have to be waited for.
type alwaysReady struct{ *limiter.Memory }

func (alwaysReady) Ready() bool  { return true }
func (alwaysReady) Close() error { return nil }
