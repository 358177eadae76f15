package limiter

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// A flood must not look like an outage, which would lift the limits: it shares the few connections there are.
func TestManyTakesAtOnceAllGetTheirAnswer(t *testing.T) {
	server := harness.Redis(t)
	s := newRedisStore(t, server.URL, nil, func(o *RedisOptions) { o.Timeout = 2 * time.Second })
	checkFleet(t, fleet(t, 2000, hitOf(1, limitOf(SlidingLog, 100, 10*time.Minute), 1), s), 100)
	if n := strings.Count(server.Client().ClientList(t.Context()).Val(), "name=ratelimitd "); n > laneCount {
		t.Errorf("%d connections, want %d whatever the load", n, laneCount)
	}
}

func TestCallersThatComeTooLateDoNotOpenTheCircuit(t *testing.T) {
	s := newRedisStore(t, harness.Redis(t).URL, nil)
	past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	for range 20 {
		if _, err := s.Take(past, []Hit{hitOf(1, limitOf(SlidingLog, 5, time.Minute), 1)}); ErrorReason(err) != "timeout" {
			t.Errorf("a caller from the past: %v", err)
		}
	}
	if err := takeError(s); err != nil {
		t.Errorf("the next caller: %v", err)
	}
}

// In an overload Redis works for those who still wait, not for those who have just given up.
func TestAnOverloadDoesNotEndAllAnswers(t *testing.T) {
	s := newRedisStore(t, "redis://"+fakeRedis(t, "*2\r\n:1\r\n:1", 200*time.Microsecond), nil, withBudget)
	l := startLoad(s, 200) // of 40 000 takes a second the fake decides 5 000
	defer l.stop()
	time.Sleep(500 * time.Millisecond)
	l.reset()
	time.Sleep(time.Second)
	if reasons, _ := l.reset(); reasons[""] < 200 { // on a machine that is busy with other tests
		t.Errorf("%v in a second, want many answers", reasons)
	}
}
