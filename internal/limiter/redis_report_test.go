package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// reported is a store that is not connected, its reporter, and what the log has heard.
type reported struct {
	*Redis
	reporter
	logs *observer.ObservedLogs
}

func newReported(t *testing.T, addrs ...string) *reported {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	s, err := NewRedis(RedisOptions{URL: "redis://a", Mode: ModeCluster, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	r := &reported{s, reporter{store: s}, logs}
	r.own(addrs...)
	return r
}

// own makes these the servers that hold buckets, all of them well.
func (r *reported) own(addrs ...string) {
	r.servers.owners = nil
	for _, addr := range addrs {
		r.servers.owners = append(r.servers.owners, newServer(r.Redis, addr))
		r.state(addr, idle)
	}
}

func (r *reported) server(addr string) *server {
	at := slices.IndexFunc(r.servers.owners, func(v *server) bool { return v.options.Addr == addr })
	return r.servers.owners[at]
}

func (r *reported) state(addr string, busySince int64) {
	for _, l := range r.server(addr).lanes {
		l.busySince.Store(busySince)
	}
}

// lose makes a server not answer, for that reason.
func (r *reported) lose(addr string, err error) {
	r.state(addr, down)
	_ = r.server(addr).about(err)
}

// takes makes that many takes end.
func (r *reported) takes(failed, answered int64) {
	r.Redis.failed.Add(failed)
	r.Redis.answered.Add(answered)
}

// heard returns the lines since the last call.
func (r *reported) heard() (lines []string) {
	for _, e := range r.logs.TakeAll() {
		m := e.ContextMap()
		line := e.Message
		for _, field := range []string{"for", "away", "failed", "reason", "silent", "from", "to"} {
			if v, ok := m[field]; ok {
				line += fmt.Sprintf(" %s=%v", field, v)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestTheLogTellsOfEachNewCauseAndOnceAMinuteOfAnOldOne(t *testing.T) {
	r := newReported(t, "a:1", "b:1", "c:1")
	timeout := error(context.DeadlineExceeded)
	start := time.Unix(1_000_000, 0)
	for _, step := range []struct {
		at   time.Duration
		does func()
		want []string
	}{
		{0, func() { r.takes(0, 10) }, nil},
		{1 * time.Second, func() { r.takes(3, 10); r.trouble.Store(&timeout) },
			[]string{"redis fails: requests are decided by on_store_error for=0s failed=3 reason=timeout"}},
		{2 * time.Second, func() { r.takes(2, 10) }, nil},
		{3 * time.Second, func() { r.takes(5, 10); r.lose("b:1", errorReply("LOADING")) },
			[]string{"redis still fails for=2s failed=10 reason=other silent=[b:1]"}},
		{4 * time.Second, func() { r.takes(0, 0); r.lose("b:1", errorReply("NOAUTH Authentication required.")) },
			[]string{"redis still fails for=3s failed=10 reason=auth silent=[b:1]"}},
		{63 * time.Second, func() { r.takes(90, 0) }, nil},
		{64 * time.Second, func() { r.takes(100, 0) }, []string{"redis still fails for=1m3s failed=200 reason=auth silent=[b:1]"}},
		{65 * time.Second, func() { r.lose("c:1", errors.New("else")) }, []string{"redis still fails for=1m4s failed=200 reason=auth silent=[b:1 c:1]"}},
		{70 * time.Second, func() { r.state("b:1", idle); r.state("c:1", idle); r.takes(0, 5) },
			[]string{"redis answers again away=1m9s failed=200"}},
		{71 * time.Second, func() { r.takes(0, 5) }, nil},
		{72 * time.Second, func() { r.takes(1, 5) },
			[]string{"redis fails: requests are decided by on_store_error for=0s failed=1 reason=timeout"}},
	} {
		step.does()
		r.report(start.Add(step.at))
		if got := r.heard(); !slices.Equal(got, step.want) {
			t.Errorf("after %v: %q, want %q", step.at, got, step.want)
		}
	}
}

func TestTheLogTellsOnceThatTheMastersAreOthers(t *testing.T) {
	r := newReported(t)
	for i, step := range []struct {
		owners []string
		want   []string
	}{
		{[]string{"b:1", "a:1"}, nil}, // the first that are known
		{[]string{"a:1", "b:1"}, nil},
		{[]string{"a:1", "c:1"}, []string{"redis has other masters from=[a:1 b:1] to=[a:1 c:1]"}},
		{[]string{"a:1", "c:1"}, nil},
	} {
		r.own(step.owners...)
		r.report(time.Unix(int64(i), 0))
		if got := r.heard(); !slices.Equal(got, step.want) {
			t.Errorf("%v: %q, want %q", step.owners, got, step.want)
		}
	}
}

func TestTheLogHearsThatRedisIsLostAndThatItIsBack(t *testing.T) {
	server := harness.Redis(t)
	core, logs := observer.New(zapcore.InfoLevel)
	s := newRedisStore(t, server.URL, nil, withBudget, func(o *RedisOptions) { o.Logger = zap.New(core) })
	l := startLoad(s, 20)
	defer l.stop()
	last := func(level zapcore.Level) func() bool {
		return func() bool { return logs.Len() > 0 && logs.All()[logs.Len()-1].Level == level }
	}
	server.Kill()
	if !harness.Eventually(3*time.Second, last(zapcore.WarnLevel)) {
		t.Fatalf("Redis lost: %v", logs.All())
	}
	server.Restart()
	if !harness.Eventually(3*time.Second, last(zapcore.InfoLevel)) {
		t.Fatalf("Redis back: %v", logs.All())
	}
}
