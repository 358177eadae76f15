package limiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// TestWhatAFailoverLoses measures, several times for each way in which a master is replaced under full load, what was admitted
// above the quota because units that the old master had counted were not copied yet, and for how long takes failed.
func TestWhatAFailoverLoses(t *testing.T) {
	if !long() {
		t.Skip("takes minutes: set RATELIMITD_LONG")
	}
	c := harness.RedisCluster(t)
	for _, way := range []struct {
		name       string
		lose, back func(master, replica *harness.RedisServer)
	}{
		{"killed", func(m, _ *harness.RedisServer) { m.Kill() }, func(m, _ *harness.RedisServer) { m.Restart() }},
		{"stalled", func(m, _ *harness.RedisServer) { m.Stop() }, func(m, _ *harness.RedisServer) { m.Cont() }},
		{"failover by command", func(_, r *harness.RedisServer) { c.Failover(r) }, func(_, _ *harness.RedisServer) {}},
		{"takeover by command", func(_, r *harness.RedisServer) { c.Takeover(r) }, func(_, _ *harness.RedisServer) {}},
	} {
		for range 5 {
			failoverLoss(t, c, way.name, way.lose, way.back)
		}
	}
}

func failoverLoss(t *testing.T, c *harness.ClusterNodes, name string, lose, back func(master, replica *harness.RedisServer)) {
	s := newClusterStore(t, c, patient)
	defer s.Close()
	master := c.Master(0)
	replica := c.Replica(master)
	const quota = 60_000
	h := tagged(hitOf(uint64(time.Now().UnixNano()), limitOf(FixedWindow, quota, 24*time.Hour), 1), tagOn(t, c, master, 0))
	counts, stop := hammer(s, 32, 0, func(int, int) []Hit { return []Hit{h} })
	awaitTakes(t, counts, quota/3)
	lose(master, replica)
	start, longest, last := time.Now(), time.Duration(0), time.Now()
	for passed := counts.passed.Load(); passed < quota && time.Since(start) < 30*time.Second; {
		if now := counts.passed.Load(); now > passed {
			passed, longest, last = now, max(longest, time.Since(last)), time.Now()
		}
		time.Sleep(time.Millisecond)
	}
	awaitTakes(t, counts, 1000)
	stop()
	passed, failed := counts.passed.Load(), counts.failed.Load()
	t.Attr("figures", fmt.Sprintf("%s: %d admitted of a quota of %d; no take passed for %v; %d of %d takes failed, the last: %v",
		name, passed, quota, longest.Round(time.Millisecond), failed, counts.takes.Load(), counts.why()))
	if passed < quota-failed || passed > quota+quota/3 {
		t.Errorf("%s: %d admitted of a quota of %d", name, passed, quota)
	}
	back(master, replica)
	c.AwaitWhole()
}
