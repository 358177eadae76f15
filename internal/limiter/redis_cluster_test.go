package limiter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// newClusterStore returns a started store on the cluster.
func newClusterStore(t testing.TB, c *harness.ClusterNodes, change ...func(*RedisOptions)) *Redis {
	t.Helper()
	return newRedisStore(t, c.URL, nil, append(change, func(o *RedisOptions) { o.Mode = ModeCluster })...)
}

// patient is a budget with which no take fails because the machine is busy.
func patient(o *RedisOptions) { o.Timeout = 500 * time.Millisecond }

// tagOn returns a tag whose slot lies on that master, the n-th from 0.
func tagOn(t testing.TB, c *harness.ClusterNodes, master *harness.RedisServer, n int) uint32 {
	t.Helper()
	holds := c.Holds(master)
	for tag := uint32(0); tag < slotCount; tag++ {
		if !holds(int(slotOf(tag))) {
			continue
		}
		if n == 0 {
			return tag
		}
		n--
	}
	t.Fatalf("%s holds no slot", master.Addr)
	return 0
}

func tagged(h Hit, tag uint32) Hit {
	h.Tag = tag
	return h
}

// tally counts takes.
type tally struct {
	takes, failed, passed atomic.Int64
	last                  atomic.Pointer[error] // why the last one failed
}

func (c *tally) why() error {
	if last := c.last.Load(); last != nil {
		return *last
	}
	return nil
}

// hammer takes one hit after the other of what next says, from so many callers, until stop is called. Each caller pauses
// between two.
func hammer(s Store, callers int, pause time.Duration, next func(caller, n int) []Hit) (counts *tally, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	counts = new(tally)
	for caller := range callers {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				hits := next(caller, n)
				d, err := s.Take(context.Background(), hits)
				counts.takes.Add(1)
				if err != nil {
					counts.failed.Add(1)
					counts.last.Store(&err)
				} else if Judge(hits, d).Allowed {
					counts.passed.Add(1)
				}
				time.Sleep(pause)
			}
		})
	}
	return counts, func() { cancel(); running.Wait() }
}

func TestSlotsAreThoseOfRedis(t *testing.T) {
	if sum := crc16([]byte("123456789")); sum != 0x31c3 { // of the specification of Redis Cluster
		t.Errorf("crc16 is %#x, want 0x31c3", sum)
	}
}

func TestANodeThatNamesNoHostMeansItsOwn(t *testing.T) {
	for _, row := range [][3]string{{"[::1]:1", ":7", "[::1]:7"}, {"a:1", "b:7", "b:7"}, {"a:1", "odd", "odd"}} {
		if got := near(row[0], row[1]); got != row[2] {
			t.Errorf("%s said by %s is %s, want %s", row[1], row[0], got, row[2])
		}
	}
}

func TestTheNextNodeIsAskedAndThenTheSeeds(t *testing.T) {
	c := clusterView{seeds: []string{"seed:1", "b:1"}, nodes: []string{"a:1", "b:1", "c:1"}, asked: "b:1"}
	if got, want := c.others(), []string{"c:1", "a:1", "b:1", "seed:1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The parts share one cluster, because it takes seconds to start; each leaves it whole.
func TestARedisCluster(t *testing.T) {
	c := harness.RedisCluster(t)
	t.Run("agrees on the slot of a tag", func(t *testing.T) { agreesOnSlots(t, c) })
	t.Run("fails a take whose slot nobody holds", func(t *testing.T) { nobodyHoldsASlot(t, c) })
	t.Run("is asked once for buckets of one slot", func(t *testing.T) { oneSlotIsOneCall(t, c) })
	t.Run("decides takes over several slots as one server", func(t *testing.T) { spreadLikeOne(t, c) })
	t.Run("is found through any node", func(t *testing.T) { anyNodeIsEnough(t, c) })
	t.Run("keeps all limits of takes over several slots from several daemons", func(t *testing.T) { spreadFromManyDaemons(t, c) })
	t.Run("gets back what a take has spent that fails half-way", func(t *testing.T) { spreadFailsHalfWay(t, c) })
	t.Run("wants no more rights than documented", func(t *testing.T) { clusterRights(t, c) })
	t.Run("keeps the limits while a slot moves", func(t *testing.T) { movingSlot(t, c, 1) })
	t.Run("keeps all limits of a take while its slot moves", func(t *testing.T) { movingSlot(t, c, 2) })
	t.Run("gets back what was spent while the slot moves", func(t *testing.T) { giveBackToAMovingSlot(t, c) })
	t.Run("is followed through a failover by command", func(t *testing.T) { commandedFailover(t, c) })
	t.Run("loses only the slots of a master that dies", func(t *testing.T) { deadMaster(t, c) })
	t.Run("loses only the slots of a master that stalls", func(t *testing.T) { stalledMaster(t, c) })
}

func agreesOnSlots(t *testing.T, c *harness.ClusterNodes) {
	s, admin := newClusterStore(t, c), c.Nodes[0].Client()
	for _, tag := range []uint32{0, 1, 7, 1 << 31, 1<<32 - 1} {
		h := tagged(hitOf(1, Limit{}, 1), tag)
		if slot := admin.ClusterKeySlot(t.Context(), s.key(&h)).Val(); slot != int64(slotOf(tag)) {
			t.Errorf("%s has slot %d, want %d", s.key(&h), slotOf(tag), slot)
		}
	}
}

func nobodyHoldsASlot(t *testing.T, c *harness.ClusterNodes) {
	s := newClusterStore(t, c)
	s.servers.slots[slotOf(7)].Store(nil) // until the next look
	_, err := s.Take(context.Background(), []Hit{tagged(hitOf(1, limitOf(SlidingLog, 5, time.Minute), 1), 7)})
	if reason := ErrorReason(err); reason != "clusterdown" {
		t.Errorf("reason %q of %v", reason, err)
	}
}

func oneSlotIsOneCall(t *testing.T, c *harness.ClusterNodes) {
	s := newClusterStore(t, c)
	master := c.Master(int(slotOf(7)))
	before := calls(t, master)
	hits := make([]Hit, 3)
	for i := range hits {
		hits[i] = tagged(hitOf(uint64(i), limitOf(Algorithm(i+1), 100, time.Hour), 1), 7)
	}
	for range 5 {
		mustTake(t, s, hits...)
	}
	if n := calls(t, master) - before; n != 5 {
		t.Errorf("5 takes are %d calls", n)
	}
	checkFleet(t, fleet(t, 500, tagged(hitOf(10, limitOf(SlidingLog, 100, 10*time.Minute), 1), 7), s), 100)
}

// D65: the rights are those of docs/operations.md.
func clusterRights(t *testing.T, c *harness.ClusterNodes) {
	for _, node := range c.Nodes {
		if err := node.Client().Do(t.Context(), append(documentedRights("limiter", "secret"), "+cluster|slots", "+asking")...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	s := newRedisStore(t, strings.Replace(c.URL, "//", "//limiter:secret@", 1), nil, func(o *RedisOptions) { o.Mode = ModeCluster })
	for i, hits := range everyLaw() {
		mustTake(t, s, hits...)
		for j := range hits {
			hits[j].Tag, hits[j].Key = uint32(j), keyOf(uint64(30_000+10*i+j))
		}
		mustTake(t, s, hits...)
	}
	from, to := c.Master(0), c.Master(slotCount-1)
	tag := tagOn(t, c, from, 5)
	slot := int(slotOf(tag))
	c.BeginMove(slot, from, to)
	mustTake(t, s, tagged(hitOf(40_000, limitOf(SlidingLog, 5, time.Minute), 1), tag)) // asking
	c.EndMove(slot, from, to)
	c.Move(slot, to, from)
}

// calls is how often the server has been asked to run a script.
func calls(t *testing.T, server *harness.RedisServer) (n int) {
	t.Helper()
	stats := server.Client().InfoMap(t.Context(), "commandstats").Item("Commandstats", "cmdstat_evalsha")
	_, _ = fmt.Sscanf(stats, "calls=%d", &n)
	return n
}

func anyNodeIsEnough(t *testing.T, c *harness.ClusterNodes) {
	for _, node := range c.Nodes { // replicas too
		s := newRedisStore(t, node.URL, nil, func(o *RedisOptions) { o.Mode = ModeCluster })
		if !s.Ready() || len(s.servers.owning()) != 3 {
			t.Errorf("through %s: ready %v, %d masters", node.Addr, s.Ready(), len(s.servers.owning()))
		}
		for tag := range uint32(20) {
			mustTake(t, s, tagged(hitOf(20, limitOf(FixedWindow, 1000, time.Hour), 1), tag))
		}
	}
}

// D83: each take is of so many buckets of the slot, some of which are only made while it moves.
func movingSlot(t *testing.T, c *harness.ClusterNodes, each int) {
	s := newClusterStore(t, c, patient)
	const groups, quota = 60, 20
	from, to := c.Master(0), c.Master(slotCount-1)
	tag := tagOn(t, c, from, each)
	slot := int(slotOf(tag))
	counts, stop := hammer(s, 10, time.Millisecond, func(_, n int) (hits []Hit) {
		for i := range each {
			hits = append(hits, tagged(hitOf(uint64(1000*each+100*i+n/8%groups), limitOf(SlidingLog, quota, time.Hour), 1), tag))
		}
		return hits
	})
	awaitTakes(t, counts, 500)
	c.BeginMove(slot, from, to)
	for c.MoveKeys(slot, from, to, 3) > 0 {
		awaitTakes(t, counts, 50)
	}
	awaitTakes(t, counts, 200)
	c.EndMove(slot, from, to)
	awaitTakes(t, counts, 10*groups*quota)
	stop()
	if n := counts.passed.Load(); n != groups*quota {
		t.Errorf("%d passed, want %d", n, groups*quota)
	}
	if failed, takes := counts.failed.Load(), counts.takes.Load(); failed*1000 > takes {
		t.Errorf("%d of %d takes failed: %v", failed, takes, counts.why())
	}
	c.Move(slot, to, from)
}

// awaitTakes waits until so many more takes have ended.
func awaitTakes(t *testing.T, counts *tally, n int64) {
	t.Helper()
	before := counts.takes.Load()
	if !harness.Eventually(20*time.Second, func() bool { return counts.takes.Load() >= before+n }) {
		t.Fatalf("%d takes in 20 s, want %d", counts.takes.Load()-before, n)
	}
}

// D83
func commandedFailover(t *testing.T, c *harness.ClusterNodes) {
	s := newClusterStore(t, c, patient)
	master := c.Master(0)
	replica := c.Replica(master)
	const quota = 3000
	h := tagged(hitOf(50_000, limitOf(FixedWindow, quota, 24*time.Hour), 1), tagOn(t, c, master, 1))
	counts, stop := hammer(s, 5, time.Millisecond, func(int, int) []Hit { return []Hit{h} })
	awaitTakes(t, counts, 500)
	c.Failover(replica)
	if !harness.Eventually(5*time.Second, func() bool { return c.Master(0) == replica }) {
		t.Error("no failover after 5 s")
	}
	awaitTakes(t, counts, quota)
	stop()
	if passed, failed, takes := counts.passed.Load(), counts.failed.Load(), counts.takes.Load(); passed != quota || failed*100 > takes {
		t.Errorf("%d passed, want %d; %d of %d takes failed", passed, quota, failed, takes)
	}
	c.AwaitWhole()
}

// received is how many connections have been made to the server.
func received(t *testing.T, server *harness.RedisServer) (n int) {
	t.Helper()
	_, _ = fmt.Sscan(server.Client().InfoMap(t.Context(), "stats").Item("Stats", "total_connections_received"), &n)
	return n
}

// D83, and what DESIGN §7 promises of a dead server
func deadMaster(t *testing.T, c *harness.ClusterNodes) {
	loseMaster(t, c, (*harness.RedisServer).Kill, (*harness.RedisServer).Restart)
}

func stalledMaster(t *testing.T, c *harness.ClusterNodes) {
	loseMaster(t, c, (*harness.RedisServer).Stop, (*harness.RedisServer).Cont)
}

// loseMaster takes a master away under load and gives it back once its replica serves.
func loseMaster(t *testing.T, c *harness.ClusterNodes, lose, back func(*harness.RedisServer)) {
	s := newClusterStore(t, c, patient)
	master, other := c.Master(0), c.Master(slotCount-1)
	const quota = 3000
	hit := hitOf(uint64(time.Now().UnixNano()), limitOf(FixedWindow, quota, 24*time.Hour), 1)
	lost, kept := tagged(hit, tagOn(t, c, master, 2)), tagged(hit, tagOn(t, c, other, 2))
	kept.Limit.Quota = 1_000_000
	counts, stop := hammer(s, 4, time.Millisecond, func(int, int) []Hit { return []Hit{lost} })
	others, stopOthers := hammer(s, 4, time.Millisecond, func(int, int) []Hit { return []Hit{kept} })
	awaitTakes(t, counts, 500)
	start, connections := time.Now(), received(t, other)
	lose(master)
	acknowledged := counts.passed.Load()
	if !harness.Eventually(15*time.Second, func() bool { return counts.passed.Load() > acknowledged+100 }) {
		t.Error("no takes after 15 s")
	}
	away := time.Since(start)
	if n, most := received(t, other)-connections, 10+int(away/lookPause); n > most {
		t.Errorf("%d new connections to another master in %v, want %d at most", n, away, most)
	}
	awaitTakes(t, counts, quota)
	stop()
	stopOthers()
	t.Logf("%d of %d takes failed in about %v; %d passed of a quota of %d; %d of %d of the other master failed",
		counts.failed.Load(), counts.takes.Load(), away, counts.passed.Load(), quota, others.failed.Load(), others.takes.Load())
	// What each of the four callers had on the way may have been spent unheard.
	if passed := counts.passed.Load(); passed < quota-4 || passed > quota+quota/100 {
		t.Errorf("%d passed, want %d", passed, quota)
	}
	// A node writes to its disk before it votes.
	if failed := others.failed.Load(); failed*1000 > others.takes.Load() {
		t.Errorf("%d of %d takes of the other master failed: %v", failed, others.takes.Load(), others.why())
	}
	back(master)
	c.AwaitWhole()
}
