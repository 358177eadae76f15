package limiter

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// spreadLikeOne takes random hits over several slots, one take after the other, and expects what one server decides.
func spreadLikeOne(t *testing.T, c *harness.ClusterNodes) {
	clock := newClock()
	s := newClusterStore(t, c, func(o *RedisOptions) { o.Now = clock.ms.Load })
	one := NewMemory(MemoryOptions{Now: clock.time})
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for step := range 1500 {
		clock.advance(time.Duration(random.IntN(400)) * time.Millisecond)
		hits := randomSpread(random)
		got, want := mustTake(t, s, hits...), mustTake(t, one, hits...)
		for i := range hits {
			if want[i].Allowed && !Judge(hits, want).Allowed { // nobody is told when more comes than was not spent
				got[i].ResetAfter, want[i].ResetAfter = 0, 0
			}
			if got[i] != want[i] {
				t.Fatalf("step %d, hit %d of %d, %+v:\n got %+v\nwant %+v\nall %+v", step, i, len(hits), hits[i], got[i], want[i], want)
			}
		}
		if !Judge(hits, got).Allowed {
			refused++
		}
	}
	if refused < 150 || refused > 1350 {
		t.Errorf("%d of 1500 takes refused", refused)
	}
}

// randomSpread is 2 to 5 hits on some of 24 buckets, four in each of six slots.
func randomSpread(random *rand.Rand) (hits []Hit) {
	for _, bucket := range random.Perm(24)[:2+random.IntN(4)] {
		a := allAlgorithms[bucket%len(allAlgorithms)]
		h := tagged(hitOf(uint64(bucket), limitOf(a, uint32(3+bucket%5), 10*time.Second), uint32(random.IntN(3))), uint32(bucket/4))
		h.Shadow = random.IntN(6) == 0
		h.CountDenied = bucket%7 == 0
		if bucket%5 == 0 {
			h.Ban = 3 * time.Second
		}
		hits = append(hits, h)
	}
	return hits
}

// spreadFromManyDaemons has three daemons take one of three narrow buckets, one that all share and that is full before
// they are, and one that never is, in different slots. D2, D64
func spreadFromManyDaemons(t *testing.T, c *harness.ClusterNodes) {
	daemons := []Store{newClusterStore(t, c), newClusterStore(t, c), newClusterStore(t, c)}
	const narrow, shared, wide = 200, 500, 10_000
	for _, a := range allAlgorithms {
		hit := func(n, quota uint32) Hit {
			return tagged(hitOf(1000*uint64(a)+uint64(n), limitOf(a, quota, 24*time.Hour), 1), 100+n)
		}
		hits := func(caller int) []Hit { return []Hit{hit(0, wide), hit(1, shared), hit(2+uint32(caller%3), narrow)} }
		var passed atomic.Int64
		var callers sync.WaitGroup
		for caller := range 900 {
			callers.Go(func() {
				want := hits(caller)
				d, err := daemons[caller/3%3].Take(context.Background(), want)
				if err != nil {
					t.Error(err)
				} else if Judge(want, d).Allowed {
					passed.Add(1)
				}
			})
		}
		callers.Wait()
		inRace := passed.Load()
		for caller := range 3 { // what was refused too early passes now
			for Judge(hits(caller), mustTake(t, daemons[0], hits(caller)...)).Allowed {
				passed.Add(1)
			}
		}
		left := func(h Hit) int64 { return int64(mustTake(t, daemons[0], look(h))[0].Remaining) }
		lefts := []int64{left(hit(0, wide)), left(hit(1, shared)), left(hit(2, narrow)) + left(hit(3, narrow)) + left(hit(4, narrow))}
		if a == TokenBucket && lefts[2] >= 3*narrow-shared-10 {
			lefts[2] = 3*narrow - shared // what came back while a unit was lent is not given back
		}
		if want := []int64{wide - shared, 0, 3*narrow - shared}; passed.Load() != shared || !slices.Equal(lefts, want) {
			t.Errorf("%s: %d passed, want %d; %d left, want %d", a, passed.Load(), shared, lefts, want)
		}
		t.Logf("%s: %d of %d passed in the race", a, inRace, shared)
	}
}

// spreadFailsHalfWay has the second of two masters refuse to write: it can be asked, but not taken from.
func spreadFailsHalfWay(t *testing.T, c *harness.ClusterNodes) {
	s := newClusterStore(t, c)
	first, second := c.Master(0), c.Master(slotCount-1)
	full := second.Client()
	if err := full.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for _, a := range allAlgorithms {
		hits := []Hit{
			tagged(hitOf(20_000+uint64(a), limitOf(a, 200, 24*time.Hour), 1), tagOn(t, c, second, 3)),
			tagged(hitOf(20_000+uint64(a), limitOf(a, 100, 24*time.Hour), 1), tagOn(t, c, first, 3)), // less: it is taken first
		}
		if _, err := s.Take(context.Background(), hits); ErrorReason(err) != "oom" {
			t.Fatalf("%s: %v", a, err)
		}
		if left := mustTake(t, s, look(hits[1]))[0].Remaining; left != 100 {
			t.Errorf("%s: %d left of 100 that were given back", a, left)
		}
	}
	if err := full.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
}

func giveBackToAMovingSlot(t *testing.T, c *harness.ClusterNodes) {
	s := newClusterStore(t, c, patient)
	from, to := c.Master(0), c.Master(slotCount-1)
	tag := tagOn(t, c, from, 1)
	slot := int(slotOf(tag))
	var hits []Hit
	for n := range uint64(2) {
		hits = append(hits, tagged(hitOf(30_000+n, limitOf(SlidingLog, 10, time.Hour), 1), tag))
	}
	deadline := time.Now().Add(5 * time.Second)
	_, at, err := s.runDriver(slotOf(tag), hits, words{dated: true}, deadline)
	if err != nil {
		t.Fatal(err)
	}
	c.BeginMove(slot, from, to)
	c.MoveKeys(slot, from, to, 1) // of the two
	half := &spread{store: s, hits: hits, deadline: deadline}
	half.giveBack([]part{{slot: slotOf(tag), hits: []int{0, 1}, at: at}})
	for _, h := range hits {
		if d := mustTake(t, s, look(h))[0]; d.Remaining != 10 {
			t.Errorf("%d of 10 left", d.Remaining)
		}
	}
	for c.MoveKeys(slot, from, to, 100) > 0 {
	}
	c.EndMove(slot, from, to)
}

func TestTheLeastQuotaIsTakenFirstAndWhatCanBanLast(t *testing.T) {
	hits := []Hit{
		{Limit: Limit{Quota: 5}, Ban: time.Minute}, {Limit: Limit{Quota: 300}}, {Limit: Limit{Quota: 20}}, {Limit: Limit{Quota: 100}},
		{Limit: Limit{Quota: 7}, Ban: time.Second},
	}
	parts := []part{{hits: []int{0}}, {hits: []int{1, 2}}, {hits: []int{3}}, {hits: []int{4}}}
	slices.SortStableFunc(parts, (&spread{hits: hits}).order)
	var order []int
	for _, p := range parts {
		order = append(order, p.hits[0])
	}
	if want := []int{1, 3, 0, 4}; !slices.Equal(order, want) {
		t.Errorf("taken in the order %v, want %v", order, want)
	}
}

// A daemon that starts while a master is away serves the slots of the others.
func TestAClusterThatLacksAMasterIsReadyOnceAllWereTried(t *testing.T) {
	s, err := NewRedis(RedisOptions{URL: "redis://127.0.0.1:1", Mode: ModeCluster})
	if err != nil {
		t.Fatal(err)
	}
	well, away := newServer(s, "well"), newServer(s, "away")
	s.servers.owners = []*server{well, away}
	well.greeted.Store(true)
	close(well.tried)
	if s.Ready() {
		t.Error("ready before the second master was tried")
	}
	close(away.tried)
	if !s.Ready() {
		t.Error("not ready though a master answers")
	}
}
