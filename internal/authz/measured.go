package authz

import (
	"context"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
)

// Store is a store of buckets that has a name.
type Store interface {
	limiter.Store
	// Name is "memory" or "redis": a metric label.
	Name() string
}

// Measured returns the store with its takes counted and timed under its name.
func Measured(s Store, m *metrics.Metrics) limiter.Store {
	return &measured{s, m.Store(s.Name())}
}

type measured struct {
	store   Store
	metrics *metrics.Store
}

// Take implements limiter.Store.
func (m *measured) Take(ctx context.Context, hits []limiter.Hit) ([]limiter.Decision, error) {
	start := time.Now()
	decisions, err := m.store.Take(ctx, hits)
	if took := time.Since(start); err != nil {
		m.metrics.Failed(limiter.ErrorReason(err), took)
	} else {
		m.metrics.Answered(took)
	}
	return decisions, err
}
