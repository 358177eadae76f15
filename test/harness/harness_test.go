package harness

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestAStoppedRedisAnswersAgainAndAKilledOneComesBackEmpty(t *testing.T) {
	s := Redis(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ReadTimeout: 50 * time.Millisecond})
	defer c.Close()
	ctx := context.Background()
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := c.Get(ctx, "k").Err(); err == nil {
		t.Fatal("a stopped server answered")
	}
	s.Cont()
	if err := s.Client().Get(ctx, "k").Err(); err != nil {
		t.Fatalf("after Cont: %v", err)
	}
	s.Restart()
	if err := s.Client().Get(ctx, "k").Err(); err != redis.Nil {
		t.Fatalf("after Restart: %v, want no such key", err)
	}
}

func TestRedisListensOnItsSocketToo(t *testing.T) {
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: Redis(t).Socket})
	defer c.Close()
	if err := c.Ping(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestAMissingProgramIsSkippedHereAndFailsInCI(t *testing.T) {
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		r := &recorder{TB: t}
		Binary(r, "no-such-program")
		if r.skipped != (ci == "") || r.failed != (ci != "") {
			t.Errorf("CI=%q: skipped %v, failed %v", ci, r.skipped, r.failed)
		}
	}
}

func TestTheEnvironmentSaysWhereAProgramIs(t *testing.T) {
	t.Setenv("RATELIMITD_REDIS_SERVER", "/somewhere/redis")
	if got := Binary(t, "redis-server"); got != "/somewhere/redis" {
		t.Errorf("got %s", got)
	}
}

// recorder is a test that notes how it ended.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Skipf(string, ...any)  { r.skipped = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true }
