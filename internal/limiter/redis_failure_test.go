package limiter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

const (
	testBudget = 50 * time.Millisecond
	testSlack  = 150 * time.Millisecond // for the scheduler of a busy machine
)

func withBudget(o *RedisOptions) { o.Timeout = testBudget }

// awaitRecovery waits until a take succeeds and fails the test if that lasts longer than a second.
func awaitRecovery(t *testing.T, s Store) {
	t.Helper()
	var err error
	if !harness.Eventually(time.Second, func() bool { err = takeError(s); return err == nil }) {
		t.Fatalf("not recovered after a second: %v", err)
	}
}

func takeError(s Store) error {
	_, err := s.Take(context.Background(), []Hit{hitOf(9999, limitOf(SlidingLog, 1000, time.Minute), 1)})
	return err
}

// D75
func TestAStalledRedisCostsNoTakeMoreThanItsBudget(t *testing.T) {
	server := harness.Redis(t)
	s := newRedisStore(t, server.URL, nil, withBudget)
	l := startLoad(s, 50)
	defer l.stop()
	time.Sleep(200 * time.Millisecond)
	if reasons, _ := l.reset(); reasons[""] == 0 {
		t.Fatalf("before the stall: %v", reasons)
	}
	before := runtime.NumGoroutine()
	server.Stop()
	time.Sleep(1500 * time.Millisecond)
	reasons, slowest := l.reset()
	if slowest > testBudget+testSlack {
		t.Errorf("a take lasted %v", slowest)
	}
	if reasons["timeout"] == 0 || reasons["breaker"] < reasons["timeout"] {
		t.Errorf("during the stall: %v, want some timeouts and then no asking", reasons)
	}
	if n := runtime.NumGoroutine(); n > before+2*laneCount {
		t.Errorf("%d goroutines before the stall, %d in it", before, n)
	}
	server.Cont()
	awaitRecovery(t, s)
	calm := harness.Eventually(3*time.Second, func() bool {
		l.reset()
		time.Sleep(50 * time.Millisecond)
		reasons, _ = l.reset()
		return len(reasons) == 1 && reasons[""] > 0
	})
	if !calm {
		t.Errorf("after the stall: %v", reasons)
	}
}

// D79, D63
func TestAKilledRedisIsFoundAgain(t *testing.T) {
	server := harness.Redis(t)
	s := newRedisStore(t, server.URL, nil, withBudget)
	l := startLoad(s, 50)
	defer l.stop()
	for range 2 {
		time.Sleep(100 * time.Millisecond)
		server.Kill()
		time.Sleep(400 * time.Millisecond)
		if _, slowest := l.reset(); slowest > testBudget+testSlack {
			t.Errorf("a take lasted %v", slowest)
		}
		server.Restart()
		awaitRecovery(t, s)
		if reasons, _ := l.reset(); reasons["noscript"] > 0 {
			t.Errorf("while Redis came back: %v", reasons)
		}
	}
}

// D101
func TestAStoreStartsWithoutRedisAndIsReadyOnceItAppears(t *testing.T) {
	server := harness.Redis(t)
	server.Kill()
	s := newRedisStore(t, server.URL, nil, withBudget)
	if s.Ready() {
		t.Error("ready without Redis")
	}
	if err := takeError(s); ErrorReason(err) != "breaker" {
		t.Errorf("a take without Redis: %v", err)
	}
	server.Restart()
	awaitRecovery(t, s)
	if !s.Ready() {
		t.Error("not ready with Redis")
	}
	server.Kill()
	if !harness.Eventually(time.Second, func() bool { return ErrorReason(takeError(s)) == "breaker" }) || !s.Ready() {
		t.Errorf("Redis lost: ready %v, %v", s.Ready(), takeError(s))
	}
}

// The handshake of a new connection takes several round trips: it has its own time, not that of the first take.
func TestARedisFarAwayAnswersWithinABudgetOfAFewRoundTrips(t *testing.T) {
	p := startProxy(t, harness.Redis(t).Addr)
	p.delay = 15 * time.Millisecond
	s := newRedisStore(t, "redis://"+p.listener.Addr().String(), nil, func(o *RedisOptions) { o.Timeout = 150 * time.Millisecond })
	l := startLoad(s, 20)
	time.Sleep(500 * time.Millisecond)
	l.stop()
	if reasons, _ := l.reset(); len(reasons) != 1 || reasons[""] == 0 {
		t.Errorf("%v, want answers alone", reasons)
	}
}

func TestAListenerThatNeverAnswersIsNotWaitedFor(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	start := time.Now()
	s := newRedisStore(t, "redis://"+silent.Addr().String(), nil, withBudget)
	if took := time.Since(start); took > minConnectTimeout+testSlack {
		t.Errorf("Start lasted %v", took)
	}
	start = time.Now()
	err = takeError(s)
	if took := time.Since(start); err == nil || took > testBudget+testSlack {
		t.Errorf("a take lasted %v: %v", took, err)
	}
}

// Connections that a firewall or a dead host has forgotten take what is written and never answer, while new ones work.
func TestHalfOpenConnectionsAreReplaced(t *testing.T) {
	p := startProxy(t, harness.Redis(t).Addr)
	s := newRedisStore(t, "redis://"+p.listener.Addr().String(), nil, withBudget)
	l := startLoad(s, 50)
	time.Sleep(200 * time.Millisecond)
	l.stop()
	p.forget()
	awaitRecovery(t, s)
}

// D82
func TestAFullServerIsAnErrorInTime(t *testing.T) {
	server := harness.Redis(t)
	s, admin := newRedisStore(t, server.URL, nil, withBudget), server.Client()
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := takeError(s); ErrorReason(err) != "oom" {
			t.Fatalf("memory is full: %v", err)
		}
	}
	if err := admin.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := takeError(s); err != nil {
		t.Errorf("memory is there again: %v", err)
	}
}

// D74: a master that was made a replica keeps its connections and answers READONLY for ever. The address may lead to the
// new master by now, so the old connections are given up; but not in a storm of new ones while it does not.
func TestADemotedMasterIsLeft(t *testing.T) {
	server := harness.Redis(t)
	core, logs := observer.New(zapcore.InfoLevel)
	s := newRedisStore(t, server.URL, nil, withBudget, func(o *RedisOptions) { o.Logger = zap.New(core) })
	admin := server.Client()
	connections := func() (n int) {
		_, after, _ := strings.Cut(admin.Info(t.Context(), "stats").Val(), "total_connections_received:")
		_, _ = fmt.Sscan(after, &n)
		return n
	}
	if err := admin.Do(t.Context(), "replicaof", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := takeError(s); ErrorReason(err) != "readonly" {
		t.Errorf("the first take: %v", err)
	}
	before, start := connections(), time.Now()
	heard := harness.Eventually(3*time.Second, func() bool { return takeError(s) != nil && logs.Len() > 0 })
	if most := laneCount * int(1+time.Since(start)/reconnectPause); !heard || connections()-before > most {
		t.Errorf("%d new connections, want %d at most; the log: %v", connections()-before, most, logs.All())
	}
	if err := admin.Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	awaitRecovery(t, s)
}

// Whatever accepts a connection and drops it at the first take is not stormed with new ones.
func TestConnectionsThatAreLostAtOnceAreNotMadeInAStorm(t *testing.T) {
	p := startProxy(t, harness.Redis(t).Addr)
	s := newRedisStore(t, "redis://"+p.listener.Addr().String(), nil, withBudget)
	start, made := time.Now(), p.made.Load()
	for time.Since(start) < 500*time.Millisecond {
		p.cut()
		_ = takeError(s)
	}
	most := int64(laneCount * (1 + time.Since(start)/reconnectPause))
	if n := p.made.Load() - made; n == 0 || n > most {
		t.Errorf("%d new connections, want 1 to %d", n, most)
	}
	awaitRecovery(t, s)
}

// A password that was changed shows as what it is, and not as connections that are made over and over.
func TestARefusedHandshakeIsNoReply(t *testing.T) {
	server := harness.Redis(t)
	admin := server.Client()
	s := newRedisStore(t, server.URL, nil, withBudget)
	if err := admin.ConfigSet(t.Context(), "requirepass", "changed").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.ClientKillByFilter(t.Context(), "type", "normal", "skipme", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	if !harness.Eventually(time.Second, func() bool { return ErrorReason(takeError(s)) == "breaker" }) {
		t.Fatalf("takes go on: %v", takeError(s))
	}
	// A take that waited meanwhile may have ended last; the next attempt to connect tells again.
	told := func() string { return s.Trouble().Error() }
	if !harness.Eventually(time.Second, func() bool { return strings.Contains(told(), "NOAUTH") }) {
		t.Errorf("the operator is told %s", told())
	}
}

// D82, D83
func TestWhatRedisRepliesInsteadOfADecisionIsAnErrorWithAReason(t *testing.T) {
	for reply, reason := range map[string]string{
		"-READONLY You can't write against a read only replica.":                 "readonly",
		"-ERR Error running script: @user_script: 12: -READONLY You can't write": "readonly",
		"-MOVED 866 127.0.0.1:7001":                                              "moved",
		"-ASK 866 127.0.0.1:7001":                                                "moved",
		"-TRYAGAIN Multiple keys request during rehashing of slot":               "tryagain",
		"-CLUSTERDOWN The cluster is down":                                       "clusterdown",
		"-CROSSSLOT Keys in request don't hash to the same slot":                 "crossslot",
		"-LOADING Redis is loading the dataset in memory":                        "loading",
		"-OOM command not allowed when used memory > 'maxmemory'.":               "oom",
		"-NOSCRIPT No matching script. Please use EVAL.":                         "noscript",
		"-NOREPLICAS Not enough good replicas to write.":                         "noreplicas",
		"-NOAUTH Authentication required.":                                       "auth",
		"-WRONGPASS invalid username-password pair":                              "auth",
		"-NOPERM this user has no permissions to run the 'evalsha' command":      "auth",
		"*1\r\n:1":          "reply",
		"*2\r\n:1001\r\n:1": "reply", // more than the limit
		"*2\r\n:-1\r\n:0":   "reply", // refused without a wait
		"+OK":               "other",
	} {
		s := newRedisStore(t, "redis://"+fakeRedis(t, reply, 0), nil)
		if err := takeError(s); ErrorReason(err) != reason {
			t.Errorf("%q: %v, reason %q, want %q", reply, err, ErrorReason(err), reason)
		}
	}
}

func TestEachWayInWhichNoReplyComesHasItsReason(t *testing.T) {
	_, refused := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)))
	_, missing := net.Dial("unix", filepath.Join(t.TempDir(), "no.sock"))
	closed, _ := net.Pipe()
	_ = closed.SetDeadline(time.Now())
	_, late := closed.Read(make([]byte, 1))
	for reason, errs := range map[string][]error{
		"":           {nil},
		"refused":    {refused, missing},
		"timeout":    {late, context.DeadlineExceeded, redis.ErrPoolTimeout},
		"connection": {io.EOF, io.ErrUnexpectedEOF, redis.ErrClosed, net.ErrClosed, syscall.ECONNRESET, &net.DNSError{IsNotFound: true}},
		"breaker":    {errCircuitOpen},
		"other":      {errors.New("else")},
	} {
		for _, err := range errs {
			if err != nil {
				err = fmt.Errorf("wrapped: %w", err)
			}
			if got := ErrorReason(err); got != reason {
				t.Errorf("%v: reason %q, want %q", err, got, reason)
			}
		}
	}
}

func TestACloseLeavesNothingBehind(t *testing.T) {
	server := harness.Redis(t)
	before := runtime.NumGoroutine()
	s := newRedisStore(t, server.URL, nil)
	fleet(t, 100, hitOf(1, limitOf(SlidingLog, 5, time.Minute), 1), s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := takeError(s); ErrorReason(err) != "breaker" {
		t.Errorf("a take after Close: %v", err)
	}
	if !harness.Eventually(2*time.Second, func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
	}
}
