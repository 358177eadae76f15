package limiter

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// D63
func TestAScriptThatVanishesCostsNeitherErrorsNorUnits(t *testing.T) {
	server := harness.Redis(t)
	s, admin := newRedisStore(t, server.URL, nil), server.Client()
	h := hitOf(1, limitOf(SlidingCounter, 1_000_000, 24*time.Hour), 1)
	var spent atomic.Uint32
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	var takers sync.WaitGroup
	for range 4 {
		takers.Go(func() {
			for ctx.Err() == nil {
				if d, err := s.Take(context.Background(), []Hit{h}); err != nil || !d[0].Allowed {
					t.Errorf("%+v, %v", d, err)
					return
				}
				spent.Add(1)
			}
		})
	}
	flushes := 0
	for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		if err := admin.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		flushes++
	}
	takers.Wait()
	if left := mustTake(t, s, hitOf(1, h.Limit, 0))[0].Remaining; left != 1_000_000-spent.Load() {
		t.Errorf("%d takes in %d flushes, but %d of 1000000 left", spent.Load(), flushes, left)
	}
}

// awaitLanes waits until all connections are there: each begins with a call of the script.
func awaitLanes(t *testing.T, s *Redis) {
	t.Helper()
	connected := func() bool {
		return !slices.ContainsFunc(s.servers.owning()[0].lanes, func(l *lane) bool { return l.busySince.Load() != idle })
	}
	if !harness.Eventually(time.Second, connected) {
		t.Fatal("not connected")
	}
}

func TestOneTakeIsOneCallHoweverManyHits(t *testing.T) {
	server := harness.Redis(t)
	s, admin := newRedisStore(t, server.URL, nil), server.Client()
	hits := make([]Hit, 5)
	for i := range hits {
		hits[i] = hitOf(uint64(i), limitOf(Algorithm(i+1), 10, time.Minute), 1)
	}
	awaitLanes(t, s)
	if err := admin.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		mustTake(t, s, hits...)
	}
	stats := admin.Info(t.Context(), "commandstats").Val()
	if !strings.Contains(stats, "cmdstat_evalsha:calls=3,") || strings.Contains(stats, "cmdstat_eval:") {
		t.Errorf("want three calls of evalsha:\n%s", stats)
	}
	if list := admin.ClientList(t.Context()).Val(); !strings.Contains(list, "name=ratelimitd ") {
		t.Errorf("no client is called ratelimitd:\n%s", list)
	}
}

// everyLaw is a hit for each algorithm, refused ones, a look and a shadow among them.
func everyLaw() (takes [][]Hit) {
	for _, a := range allAlgorithms {
		l, base := limitOf(a, 2, time.Minute), 10*uint64(a)
		punished := Hit{Key: keyOf(base + 4), Limit: l, Cost: 2, CountDenied: true, Ban: time.Hour}
		takes = append(takes, []Hit{punished}, []Hit{punished}, []Hit{punished}, []Hit{hitOf(base, l, 1)}, []Hit{hitOf(base, l, 1), shadow(hitOf(base+1, l, 2)), hitOf(base+2, l, 1)},
			[]Hit{hitOf(base, l, 1), hitOf(base+2, l, 1)}, []Hit{hitOf(base+3, l, 3)}, []Hit{hitOf(base+2, l, 0)})
	}
	return takes
}

// D65
func TestTheScriptTouchesOnlyTheKeysItDeclares(t *testing.T) {
	server := harness.Redis(t)
	s := newRedisStore(t, server.URL, nil)
	monitor, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer monitor.Close()
	_ = monitor.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(monitor, "MONITOR\r\n")
	lines := bufio.NewScanner(monitor)
	lines.Scan() // +OK
	for _, hits := range everyLaw() {
		mustTake(t, s, hits...)
	}
	server.Client().Echo(t.Context(), "end")

	declared, touched := map[string]bool{}, 0
	for lines.Scan() && !strings.HasSuffix(lines.Text(), `"end"`) {
		var words []string
		for _, quoted := range regexp.MustCompile(`"(?:[^"\\]|\\.)*"`).FindAllString(lines.Text(), -1) {
			words = append(words, strings.Trim(quoted, `"`))
		}
		switch {
		case strings.EqualFold(words[0], "evalsha"):
			n, _ := strconv.Atoi(words[2])
			clear(declared)
			for _, key := range words[3 : 3+n] {
				declared[key] = true
			}
		case strings.Contains(lines.Text(), " lua]") && !strings.EqualFold(words[0], "time"):
			touched++
			if len(words) < 2 || !declared[words[1]] {
				t.Errorf("%s: not among the keys of the call", lines.Text())
			}
		}
	}
	if err := lines.Err(); err != nil || touched == 0 {
		t.Errorf("the script touched %d keys, %v", touched, err)
	}
}

// documentedRights makes a user that has the rights of docs/operations.md.
func documentedRights(user, password string) []any {
	return []any{"acl", "setuser", user, "on", ">" + password, "~rl:*", "+eval", "+evalsha", "+script|load", "+time",
		"+get", "+set", "+getrange", "+setrange", "+pexpire", "+pttl", "+strlen", "+client|setname"}
}

// D65
func TestTheDocumentedRightsAreEnough(t *testing.T) {
	server := harness.Redis(t)
	if err := server.Client().Do(t.Context(), documentedRights("limiter", "secret")...).Err(); err != nil {
		t.Fatal(err)
	}
	s := newRedisStore(t, "redis://limiter:secret@"+server.Addr, nil)
	for _, hits := range everyLaw() {
		mustTake(t, s, hits...)
	}
}

// DESIGN §4.7, D71
func TestEveryKeyIsShortAndExpires(t *testing.T) {
	server := harness.Redis(t)
	s, admin := newRedisStore(t, server.URL, nil), server.Client()
	longest := newRedisStore(t, server.URL, nil, func(o *RedisOptions) { o.KeyPrefix = strings.Repeat("p", 32) })
	lives := map[string]time.Duration{}
	for _, hits := range everyLaw() {
		mustTake(t, s, hits...)
		mustTake(t, longest, hits...)
		for _, h := range hits {
			kept := h.longestWait() + h.Limit.window()/8 + time.Second
			lives[s.key(&h)], lives[longest.key(&h)] = kept, kept
		}
	}
	form := regexp.MustCompile(`^(rl|p{32}):[A-Za-z0-9_-]{22}$`)
	keys := admin.Keys(t.Context(), "*").Val()
	if len(keys) != len(lives)-2*len(allAlgorithms) { // what can never pass has no key
		t.Errorf("%d keys, of %d hits", len(keys), len(lives))
	}
	for _, key := range keys {
		if !form.MatchString(key) || len(key) >= 100 {
			t.Errorf("key %q", key)
		}
		if ttl := admin.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > lives[key] {
			t.Errorf("key %q lives for %v, want at most %v", key, ttl, lives[key])
		}
	}
}

func TestRedisIsReachedThroughAUnixSocket(t *testing.T) {
	s := newRedisStore(t, "unix://"+harness.Redis(t).Socket, nil)
	expect(t, "first", mustTake(t, s, hitOf(1, limitOf(SlidingLog, 5, time.Minute), 1))[0], true, 4)
}

func TestABadURLIsAnErrorThatKeepsThePassword(t *testing.T) {
	for _, text := range []string{"", "localhost:6379", "http://localhost", "redis://user:secret@[::1", "redis://user:secret@localhost/x"} {
		_, err := NewRedis(RedisOptions{URL: text})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheURLCannotUndoThePromisesAboutTime(t *testing.T) {
	query := url.Values{"max_retries": {"5"}, "read_timeout": {"1m"}, "dial_timeout": {"1m"}, "pool_size": {"7"}}
	s, err := NewRedis(RedisOptions{URL: "redis://localhost?" + query.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	if o := s.origin.options; o.MaxRetries != -1 || o.ReadTimeout != minConnectTimeout || o.DialTimeout != minConnectTimeout || o.PoolSize != 1 {
		t.Errorf("%+v", o)
	}
}

func TestATakeEndsBeforeItsCallerGivesUp(t *testing.T) {
	const timeout = 100 * time.Millisecond
	now := time.Now()
	for _, row := range []struct{ left, want time.Duration }{
		{time.Minute, 100 * time.Millisecond},
		{100 * time.Millisecond, 90 * time.Millisecond},
		{50 * time.Millisecond, 43750 * time.Microsecond},
		{8 * time.Millisecond, 7 * time.Millisecond},
	} {
		ctx, cancel := context.WithDeadline(context.Background(), now.Add(row.left))
		defer cancel()
		if got := budget(ctx, now, timeout); got != row.want {
			t.Errorf("%v left: budget %v, want %v", row.left, got, row.want)
		}
	}
	if got := budget(context.Background(), now, timeout); got != timeout {
		t.Errorf("a caller without a deadline: budget %v", got)
	}
}

func BenchmarkRedisTakeOfThreeHits(b *testing.B) {
	s := newRedisStore(b, harness.Redis(b).URL, nil)
	hits := make([]Hit, 3)
	for i := range hits {
		hits[i] = hitOf(uint64(i), limitOf(Algorithm(i+1), 100, time.Second), 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Take(b.Context(), hits)
	}
}
