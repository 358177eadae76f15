package limiter

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// together sends the takes in one call of the script and returns what each got.
func together(t *testing.T, server *harness.RedisServer, takes ...[]Hit) (decisions [][]Decision, errs []error) {
	t.Helper()
	s, err := NewRedis(RedisOptions{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	now, l := time.Now(), newLane(newServer(s, server.Addr), true)
	l.link.conn = conn
	for _, hits := range takes {
		c := newCall()
		s.command(&c.command, driver, 0, hits, words{}, now)
		c.begin(now.Add(time.Minute))
		l.batch = append(l.batch, c)
	}
	if n := len(join(nil, l.batch)); n != 1 {
		t.Fatalf("%d commands for %d takes", n, len(takes))
	}
	if err := l.exchange(now, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for i, c := range l.batch {
		err, d := c.wait(time.Minute), []Decision(nil)
		if _, yes := outside(c.reply); err == nil && !yes {
			d, err = decodeReply(takes[i], c.reply)
		}
		decisions, errs = append(decisions, d), append(errs, err)
	}
	return decisions, errs
}

func TestTakesThatShareACallAreDecidedOneAfterTheOther(t *testing.T) {
	server := harness.Redis(t)
	one, two := hitOf(1, limitOf(SlidingLog, 2, time.Minute), 1), hitOf(2, limitOf(TokenBucket, 5, time.Minute), 1)
	got, errs := together(t, server, []Hit{one, two}, []Hit{one}, []Hit{two, one}, []Hit{two})
	for i, want := range [][]string{{"A 1 1m0s", "A 4 12s"}, {"A 0 1m0s"}, {"A 4 12s", "D 1m0s"}, {"A 3 12s"}} {
		var texts []string
		for _, d := range got[i] {
			texts = append(texts, brief(d))
		}
		if errs[i] != nil || !slices.Equal(texts, want) {
			t.Errorf("take %d: %v, %v; want %v", i, texts, errs[i], want)
		}
	}
}

// A bucket that somebody has made something else of costs nobody else a decision.
func TestATakeThatFailsLeavesTheOthersOfItsCallAlone(t *testing.T) {
	server := harness.Redis(t)
	client := server.Client()
	fine, poisoned := hitOf(1, limitOf(SlidingCounter, 5, time.Minute), 1), hitOf(2, limitOf(SlidingCounter, 5, time.Minute), 1)
	client.HSet(t.Context(), newRedisStore(t, server.URL, nil).key(&poisoned), "a", "b")
	far := hitOf(3, limitOf(CalendarWindow, 5, 0), 1)
	far.Limit.Calendar.Zone = time.FixedZone("another year", -366*24*60*60) // its windows are not those of Redis's clock
	got, errs := together(t, server, []Hit{fine}, []Hit{fine, poisoned}, []Hit{poisoned}, []Hit{far, fine}, []Hit{fine})
	for i, wrong := range []string{"", "other", "other", "", ""} {
		if reason := ErrorReason(errs[i]); reason != wrong {
			t.Errorf("take %d: %v", i, errs[i])
		}
	}
	if got[4][0].Remaining >= got[0][0].Remaining || !got[4][0].Allowed {
		t.Errorf("the takes around: %v", got)
	}
}

func TestAFullRedisIsToldFromABrokenBucketWhereManyAskAtOnce(t *testing.T) { // D82
	server := harness.Redis(t)
	client := server.Client()
	client.ConfigSet(t.Context(), "maxmemory", "1")
	l := limitOf(SlidingLog, 5, time.Minute)
	_, errs := together(t, server, []Hit{hitOf(1, l, 1)}, []Hit{hitOf(2, l, 1)}, []Hit{hitOf(3, l, 0)})
	for i, want := range []string{"oom", "oom", ""} {
		if reason := ErrorReason(errs[i]); reason != want {
			t.Errorf("take %d: %v, want %q", i, errs[i], want)
		}
	}
}

// TestManyTakesShareFewCalls counts what Redis is asked.
func TestManyTakesShareFewCalls(t *testing.T) {
	server := harness.Redis(t)
	s := newRedisStore(t, server.URL, nil)
	client := server.Client()
	client.ConfigResetStat(t.Context())
	var all sync.WaitGroup
	const takes = 2000
	for i := range uint64(takes) {
		all.Go(func() { mustTake(t, s, hitOf(i, limitOf(SlidingLog, 5, time.Minute), 1)) })
	}
	all.Wait()
	if calls := calls(t, server); calls == 0 || calls > takes/4 {
		t.Errorf("%d calls for %d takes", calls, takes)
	}
}
