package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// persistent makes a Redis that has on disk what it has answered for, so that it is the same Redis after a crash.
var persistent = []string{"--appendonly", "yes", "--appendfsync", "always"}

// TestNoWindowHoldsMoreThanItsQuotaWhateverHappensToRedis: several rules with costs, overrides and a shadow rule, all spent
// through four daemons at once, while Redis and the limits change. D3, D63, D75, D79, D92
func TestNoWindowHoldsMoreThanItsQuotaWhateverHappensToRedis(t *testing.T) {
	server := harness.Redis(t, persistent...)
	r := newRun(t, server.URL, func(int) string { return "rl" })
	rounds, share := 1, 0.5 // of a few hundred units, on a machine that is busy with other tests
	if os.Getenv("RATELIMITD_LONG") != "" {
		rounds, share = 20, 0.9
	}
	calm, outages := r.faults(server)
	r.hammer(func() {
		for range rounds {
			r.oneByOne()
			inAnyOrder(calm, 500*time.Millisecond)
			inAnyOrder(outages, 500*time.Millisecond)
		}
	})
	r.check(share)
	t.Attr("figures", r.figures())
}

func inAnyOrder(faults []func(), pause time.Duration) {
	for _, i := range rand.Perm(len(faults)) {
		faults[i]()
		time.Sleep(pause)
	}
}

// faults is what happens to Redis and to the limits: what no request needs to feel, and what ends some without a decision.
func (r *run) faults(server *harness.RedisServer) (calm, outages []func()) {
	admin := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	r.t.Cleanup(func() { _ = admin.Close() })
	ctx := context.Background()
	calm = []func(){
		r.reload,
		r.reload,
		r.reload,
		func() {
			for range 10 {
				_ = admin.ScriptFlush(ctx).Err()
				time.Sleep(20 * time.Millisecond)
			}
		},
	}
	outages = []func(){
		server.Restart, // it is killed
		func() { // it ends as it should and is away for a while, in which the limits change
			_ = admin.Shutdown(ctx).Err()
			server.Kill()
			r.reload()
			server.Restart()
		},
		func() { // it stalls for longer than the daemons wait
			server.Stop()
			time.Sleep(800 * time.Millisecond)
			server.Cont()
		},
		func() {
			for range 10 {
				_ = admin.ClientKillByFilter(ctx, "type", "normal").Err()
				time.Sleep(20 * time.Millisecond)
			}
		},
	}
	return calm, outages
}

// The proof is worth something only if it fails where the promise is broken.
func TestDaemonsThatShareNothingAreFoundOut(t *testing.T) {
	r := newRun(t, harness.Redis(t).URL, func(i int) string { return fmt.Sprint("rl", i) })
	r.hammer(func() { time.Sleep(1500 * time.Millisecond) })
	for bucket, w := range r.fullest() {
		if !w.Broken() {
			t.Errorf("%s: %d of %d units, with a limit of its own in each daemon", bucket, w.Units, w.Quota)
		}
	}
	t.Attr("figures", r.figures())
}

func TestARedisThatForgetsIsFoundOut(t *testing.T) {
	server := harness.Redis(t)
	r := newRun(t, server.URL, func(int) string { return "rl" })
	r.sending.Store([]int{0, 1}) // of one group
	r.hammer(func() {
		time.Sleep(500 * time.Millisecond)
		server.Restart()
		time.Sleep(1300 * time.Millisecond) // refusals are remembered for a second
	})
	if w := r.fullest()["group/0"]; !w.Broken() {
		t.Errorf("%d of %d units", w.Units, w.Quota)
	}
}
