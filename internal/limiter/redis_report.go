package limiter

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// reportInterval is how often the log may hear that Redis was lost or is back.
const reportInterval = time.Second

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
	fails := failed > 0 || answered == 0 && !s.servers.answer(time.Now())
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
