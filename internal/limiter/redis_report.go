package limiter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
)

const (
	// reportInterval is how often the log may hear of Redis.
	reportInterval = time.Second
	// remindInterval is how often it hears of a failure that goes on unchanged.
	remindInterval = time.Minute
)

// reporter tells the log what becomes of Redis.
type reporter struct {
	store   *Redis
	masters []string // that the log knows of, sorted

	since            time.Time // when the log heard that Redis fails; zero while it answers
	failed, answered int64     // takes since then
	cause            string    // what the log heard last
	told             time.Time // when that was
}

// run reports until ctx ends.
func (r *reporter) run(ctx context.Context) {
	reports := time.NewTicker(reportInterval)
	defer reports.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-reports.C:
			r.report(now)
		}
	}
}

// report goes by what takes got since the last report and, without any, by whether there is a connection.
func (r *reporter) report(now time.Time) {
	r.moved()
	s := r.store
	failed, answered := s.failed.Swap(0), s.answered.Swap(0)
	switch fails := failed > 0 || answered == 0 && !s.servers.answer(now); {
	case fails:
		r.failed, r.answered = r.failed+failed, r.answered+answered
		r.fails(now)
	case !r.since.IsZero():
		s.log.Info("redis answers again", zap.Duration("away", now.Sub(r.since)), zap.Int64("failed", r.failed))
		*r = reporter{store: s, masters: r.masters}
	}
}

// fails tells of a failure when it begins, when its cause changes and once in a while.
func (r *reporter) fails(now time.Time) {
	silent, err := r.store.cause(now)
	reason := ErrorReason(err)
	cause := fmt.Sprint(reason, silent)
	message := "redis still fails"
	switch {
	case r.since.IsZero():
		r.since, message = now, "redis fails: requests are decided by on_store_error"
	case cause == r.cause && now.Sub(r.told) < remindInterval:
		return
	}
	r.cause, r.told = cause, now
	fields := []zap.Field{zap.Duration("for", now.Sub(r.since)), zap.Int64("failed", r.failed), zap.Int64("answered", r.answered),
		zap.String("reason", reason), zap.Error(err)}
	if len(silent) > 0 {
		fields = append(fields, zap.Strings("silent", silent))
	}
	r.store.log.Warn(message, fields...)
}

// moved tells which servers hold the buckets when those are others than before.
func (r *reporter) moved() {
	var masters []string
	for _, owner := range r.store.servers.owning() {
		masters = append(masters, owner.options.Addr)
	}
	slices.Sort(masters)
	if masters == nil || slices.Equal(masters, r.masters) {
		return
	}
	if r.masters != nil {
		r.store.log.Info("redis has other masters", zap.Strings("from", r.masters), zap.Strings("to", masters))
	}
	r.masters = masters
}

// cause is why takes fail: what is wrong with the first of the servers that do not answer, if there are any, else with the
// last take or with finding the servers. silent are the addresses of those servers.
func (s *Redis) cause(now time.Time) (silent []string, err error) {
	for _, owner := range s.servers.owning() {
		if owner.answers(now) {
			continue
		}
		silent = append(silent, owner.options.Addr)
		if trouble := owner.trouble.Load(); trouble != nil && err == nil {
			err = *trouble
		}
	}
	if trouble := s.trouble.Load(); trouble != nil && err == nil {
		err = *trouble
	}
	if err == nil {
		err = errCircuitOpen
	}
	return silent, err
}
