package limiter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitd/ratelimitd/lua"
	"github.com/ratelimitd/ratelimitd/test/harness"
)

// retracting takes hits from one bucket in Redis and gives some of them back, beside a bucket in Go that never sees those.
type retracting struct {
	t      *testing.T
	client *redis.Client
	key    string
	r      *rand.Rand
	limit  Limit
	now    int64
	kept   bucket
	owed   []owedHit
	late   bool // something was given back late, of which a part may have been lost
}

// owedHit is a hit that was spent and is to be given back.
type owedHit struct {
	packed []byte
	cost   uint32
	at     int64
}

// take spends a hit in Redis.
func (s *retracting) take(cost uint32) (Decision, []byte) {
	s.t.Helper()
	h := Hit{Limit: s.limit, Cost: cost}
	packed := appendRequest(nil, []Hit{h}, time.UnixMilli(s.now), 0)
	reply, err := s.client.Eval(context.Background(), lua.Driver, []string{s.key}, packed, s.now, 1).Int64Slice()
	if err != nil || len(reply) != 3 || reply[2] != s.now {
		s.t.Fatalf("%v, %v", reply, err)
	}
	d, err := decodeReply([]Hit{h}, reply[:2])
	if err != nil {
		s.t.Fatal(err)
	}
	return d[0], packed
}

// giveBack gives an owed hit back and returns how many units that was.
func (s *retracting) giveBack(o owedHit) uint32 {
	s.t.Helper()
	reply, err := s.client.Eval(context.Background(), lua.GiveBack, []string{s.key}, o.packed, s.now, o.at).Int64Slice()
	if err != nil || len(reply) != 1 || reply[0] < 0 || reply[0] > int64(o.cost) {
		s.t.Fatalf("%d units of a cost of %d, %v", reply, o.cost, err)
	}
	return uint32(reply[0])
}

// same compares what is left in Redis with what the bucket that never saw the hits given back has left.
func (s *retracting) same(equal bool) {
	s.t.Helper()
	got, _ := s.take(0)
	want := s.kept.look(s.limit.law(), 0, s.now)
	if equal && got != want || !equal && got.Remaining > want.Remaining {
		s.t.Fatalf("%v, %d ms: %s are left, want %s", s.limit, s.now-aligned, brief(got), brief(want))
	}
}

func (s *retracting) step() {
	switch s.r.IntN(8) {
	case 0, 1, 2:
		s.now += s.r.Int64N(s.limit.Window.Milliseconds()/8 + 1)
	case 3, 4: // a hit that stays
		cost := uint32(1 + s.r.IntN(3))
		if d, _ := s.take(cost); d.Allowed {
			if d := takeOne(s.kept, s.limit, cost, s.now); !d.Allowed {
				s.t.Fatalf("%v: a hit of cost %d passed, but: %s", s.limit, cost, brief(d))
			}
		}
	case 5, 6: // a hit that is given back at once, or later
		cost := uint32(1 + s.r.IntN(3))
		d, packed := s.take(cost)
		if !d.Allowed {
			break
		}
		o := owedHit{packed, cost, s.now}
		if s.r.IntN(2) == 0 {
			if units := s.giveBack(o); units != cost {
				s.t.Fatalf("%v: %d units given back at once, of %d", s.limit, units, cost)
			}
			s.same(len(s.owed) == 0 && !s.late)
			break
		}
		s.owed = append(s.owed, o)
	case 7:
		if len(s.owed) > 0 {
			i := s.r.IntN(len(s.owed))
			s.giveBack(s.owed[i])
			s.late = true
			s.owed = append(s.owed[:i], s.owed[i+1:]...)
		}
	}
	s.same(false)
}

// D64
func TestWhatIsGivenBackIsNeverMoreThanIsOwed(t *testing.T) {
	client := harness.Redis(t).Client()
	for seed := range uint64(40) {
		for _, a := range allAlgorithms {
			if a == GroupedLog {
				continue // its groups differ with what it has seen: see below
			}
			r := rand.New(rand.NewPCG(seed, uint64(a)))
			quota := []uint32{5, 12, 40, 1 << 25}[r.IntN(4)]
			if a == SlidingLog {
				quota = min(quota, 40)
			}
			s := &retracting{t: t, client: client, key: fmt.Sprint(seed, int(a)), r: r, now: aligned, kept: newBucket(a)}
			s.limit = limitOf(a, quota, []time.Duration{300 * time.Millisecond, time.Minute, 100 * 24 * time.Hour}[r.IntN(3)])
			for range 60 {
				s.step()
			}
		}
	}
}

func TestAGroupedLogGivesBackToTheGroupThatHoldsTheHit(t *testing.T) {
	s := &retracting{t: t, client: harness.Redis(t).Client(), key: "k", now: aligned, limit: limitOf(GroupedLog, 64, time.Minute)}
	var packed [4][]byte
	for i := range packed { // a group each
		_, packed[i] = s.take(2)
		s.now += 10_000
	}
	for _, i := range []int{2, 3} { // one of the others, and the newest
		if units := s.giveBack(owedHit{packed[i], 2, aligned + int64(i)*10_000}); units != 2 {
			t.Fatalf("%d units of group %d", units, i)
		}
	}
	s.now = aligned + 60_000
	if d, _ := s.take(0); d.Remaining != 62 {
		t.Errorf("when the oldest has left: %s", brief(d))
	}
	s.now += 10_000
	if d, _ := s.take(0); d.Remaining != 64 {
		t.Errorf("when both that stayed have left: %s", brief(d))
	}
}

func TestAGroupOfWhichAllWasGivenBackIsNoGroup(t *testing.T) {
	s := &retracting{t: t, client: harness.Redis(t).Client(), key: "k", now: aligned, limit: limitOf(GroupedLog, 3, time.Minute)}
	_, packed := s.take(1)
	s.now += 1000
	s.take(1)
	s.giveBack(owedHit{packed, 1, aligned})
	if d, _ := s.take(0); d.Remaining != 2 || d.ResetAfter != time.Minute {
		t.Errorf("%s, want 2 left and more in a minute, when the only unit leaves", brief(d))
	}
	packed = appendRequest(nil, []Hit{{Limit: s.limit, Cost: 2, CountDenied: true}}, time.UnixMilli(s.now), 0)
	reply, err := s.client.Eval(context.Background(), lua.Driver, []string{s.key}, packed, s.now).Int64Slice()
	if err != nil || reply[0] != 0 {
		t.Errorf("a counted hit that fits: %v, %v", reply, err)
	}
}

func TestASlidingCounterGivesBackToTheWindowBefore(t *testing.T) {
	s := &retracting{t: t, client: harness.Redis(t).Client(), key: "k", now: aligned + 50_000, limit: limitOf(SlidingCounter, 10, time.Minute)}
	_, packed := s.take(6)
	at := s.now
	s.now += 10_000 // where the next window begins, in which all of it still counts
	s.take(1)
	if d, _ := s.take(0); d.Remaining != 3 {
		t.Errorf("before: %s", brief(d))
	}
	if units := s.giveBack(owedHit{packed, 6, at}); units != 6 {
		t.Errorf("%d units, want 6", units)
	}
	if d, _ := s.take(0); d.Remaining != 9 {
		t.Errorf("then: %s", brief(d))
	}
}

// An override may have refilled the bucket faster than the hit's own limit does.
func TestATokenBucketGivesBackNoMoreThanTheFastestRefillHasLeft(t *testing.T) {
	slow := Limit{Algorithm: TokenBucket, Quota: 10, Window: time.Second, Burst: 20}
	fast := slow
	fast.Quota = 1000
	s := &retracting{t: t, client: harness.Redis(t).Client(), key: "k", now: aligned, limit: slow}
	s.take(20)
	s.now += 20
	s.limit = fast
	if d, _ := s.take(20); !d.Allowed {
		t.Fatal("the bucket is not full again")
	}
	packed := appendRequest(nil, []Hit{{Limit: fast, Cost: 20}}, time.Time{}, 0) // as spread packs it, with the fastest quota
	if units := s.giveBack(owedHit{packed, 20, aligned}); units != 0 {
		t.Errorf("%d units, but all had come back by themselves", units)
	}
}

func TestWhatAGroupedLogGivesBackMakesNoOtherRoom(t *testing.T) {
	client := harness.Redis(t).Client()
	for seed := range uint64(60) {
		s := &retracting{t: t, client: client, key: fmt.Sprint(seed), r: rand.New(rand.NewPCG(seed, 2)), now: aligned}
		s.limit = limitOf(GroupedLog, []uint32{5, 100, 1000}[s.r.IntN(3)], time.Minute)
		var passed []spent // those that are given back leave the list
		for range 80 {
			s.now += s.r.Int64N(5000) * s.r.Int64N(2)
			cost := 1 + uint32(s.r.IntN(int(s.limit.Quota)/3+1))
			before, _ := s.take(0)
			d, packed := s.take(cost)
			if !d.Allowed {
				continue
			}
			if s.r.IntN(2) == 0 {
				s.owed = append(s.owed, owedHit{packed, cost, s.now})
			}
			passed = append(passed, spent{s.now, int64(cost)})
			if len(s.owed) > 0 && s.r.IntN(3) == 0 {
				o := s.owed[len(s.owed)-1]
				s.owed = s.owed[:len(s.owed)-1]
				s.giveBack(o)
				for i := range passed {
					if passed[i] == (spent{o.at, int64(o.cost)}) {
						passed = append(passed[:i], passed[i+1:]...)
						break
					}
				}
			}
			units := inWindow(passed, s.limit.law(), s.now)
			now, _ := s.take(0)
			if units > int64(s.limit.Quota) || int64(now.Remaining) > int64(s.limit.Quota)-units {
				t.Fatalf("seed %d: %d units are in the window, %s are left of %d; before that %s",
					seed, units, brief(now), s.limit.Quota, brief(before))
			}
		}
	}
}
