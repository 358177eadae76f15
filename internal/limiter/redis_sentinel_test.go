package limiter

import (
	"strings"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// resumed waits until sentinels name another master, then until takes are decided again, and checks that this lasts no more
// than two seconds. It returns how long both lasted.
func resumed(t *testing.T, set *harness.SentinelSet, s Store, old string) (switched, after time.Duration) {
	t.Helper()
	start := time.Now()
	if !harness.Eventually(15*time.Second, func() bool { addr := set.MasterAddr(); return addr != "" && addr != old }) {
		t.Fatal("the sentinels have not switched to another master after 15 s")
	}
	switched = time.Since(start)
	start = time.Now()
	on := func() bool { return takeError(s) == nil && s.(*Redis).servers.owning()[0].options.Addr != old }
	if !harness.Eventually(2*time.Second, on) {
		t.Errorf("2 s after the switch: %v", takeError(s))
	}
	return switched, time.Since(start)
}

// onSentinels returns a store that knows the sentinels alone, and a bucket that the master and its replica have.
func onSentinels(t *testing.T, set *harness.SentinelSet) (*Redis, Hit) {
	t.Helper()
	for _, sentinel := range set.Sentinels { // the rights are those of docs/operations.md
		err := sentinel.Client().Do(t.Context(), "acl", "setuser", "limiter", "on", ">secret", "+sentinel|master", "+client|setname").Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, server := range []*harness.RedisServer{set.Master, set.Replica} {
		if err := server.Client().Do(t.Context(), documentedRights("taker", "other")...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	url := strings.Replace(set.URL, "//", "//limiter:secret@", 1) + "&username=taker&password=other"
	s := newRedisStore(t, url, nil, withBudget, func(o *RedisOptions) { o.Mode = ModeSentinel })
	if !s.Ready() {
		t.Fatal("not ready")
	}
	h := hitOf(5000, limitOf(SlidingLog, 100, time.Hour), 1)
	expect(t, "on the first master", mustTake(t, s, h)[0], true, 99)
	// A master that stalls right after its reply has perhaps not sent the bucket on.
	if !harness.Eventually(5*time.Second, func() bool { return set.Replica.Client().DBSize(t.Context()).Val() > 0 }) {
		t.Fatal("the replica has no bucket after 5 s")
	}
	return s, h
}

// D74
func TestAMasterThatTheSentinelsReplaceIsLeftThoughItsConnectionsStay(t *testing.T) {
	set := harness.Sentinel(t)
	s, h := onSentinels(t, set)
	l := startLoad(s, 20)
	defer l.stop()
	set.Failover()
	switched, after := resumed(t, set, s, set.Master.Addr)
	reasons, _ := l.reset()
	t.Logf("switched after %v, takes resumed %v later; meanwhile %v", switched, after, reasons)
	expect(t, "on the second master", mustTake(t, s, h)[0], true, 98)
}

// D74
func TestAMasterThatStallsIsLeftOnceTheSentinelsReplaceIt(t *testing.T) {
	set := harness.Sentinel(t)
	s, h := onSentinels(t, set)
	l := startLoad(s, 20)
	defer l.stop()
	set.Master.Stop()
	switched, after := resumed(t, set, s, set.Master.Addr)
	reasons, slowest := l.reset()
	t.Logf("switched after %v, takes resumed %v later; meanwhile %v", switched, after, reasons)
	if slowest > testBudget+testSlack {
		t.Errorf("a take lasted %v", slowest)
	}
	expect(t, "on the second master", mustTake(t, s, h)[0], true, 98)
}

func TestTheSentinelThatKnowsOfTheLatestFailoverIsBelieved(t *testing.T) {
	answers := []masterAnswer{{addr: "a:1", epoch: 3}, {err: errReply}, {addr: "b:1", epoch: 5}, {addr: "a:1", epoch: 4}}
	if newest, err := latest(answers); newest != "b:1" || err != nil {
		t.Errorf("%s, %v", newest, err)
	}
	if _, err := latest(answers[1:2]); err == nil {
		t.Error("no sentinel answers, and that is no error")
	}
}
