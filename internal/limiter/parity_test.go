package limiter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitd/ratelimitd/lua"
	"github.com/ratelimitd/ratelimitd/test/harness"
)

// TestGoAndLuaDecideTheSame takes random batches from the buckets in Go and from a real Redis, and compares every number of
// every decision, and whether each bucket is kept for long enough and no longer: so that what the properties hold the
// algorithms in Go to, they hold Redis to. D4, D24, D69, D70, D92
func TestGoAndLuaDecideTheSame(t *testing.T) {
	traces := 700
	switch {
	case testing.Short():
		traces = 100
	case long():
		traces = 15_000
	}
	client := harness.Redis(t).Client()
	sum, err := client.ScriptLoad(context.Background(), lua.Driver).Result()
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	for seed := range uint64(traces) {
		trace := newTrace(seed)
		waits += trace.waits
		replayed := false
		for attempt := 0; attempt < 5 && !replayed; attempt++ {
			replayed = trace.replay(t, client, sum, fmt.Sprintf("%d-%d-", seed, attempt))
		}
		if !replayed {
			t.Fatalf("seed %d: Redis took too long, five times", seed)
		}
		if t.Failed() {
			return
		}
	}
	t.Attr("figures", fmt.Sprintf("%d takes, %d of them at the end of a wait or a tick earlier", traces*takesOfTrace, waits))
}

// trace is a sequence of takes from a few buckets, and what the Go algorithms made of it.
type trace struct {
	seed    uint64
	counted int // how many of 8 hits are counted when refused
	buckets []bucket
	keys    []keyOfTrace
	takes   []takeOfTrace
	waits   int // takes that come when the one before was told to, or a tick earlier
}

type keyOfTrace struct {
	limit Limit  // as last changed
	quota uint32 // the largest so far
	bans  bool   // each refusal does
	lives int64  // ms for which the bucket may be kept, at most, unless its lease was renewed longer ago
}

type takeOfTrace struct {
	now       int64
	expired   []int // keys that are missing by now
	keys      []int // hits[i] is of keys[i]
	hits      []Hit
	decisions []Decision
	kept      int64 // for how many ms the bucket of keys[0] must be kept from now on
	lives     int64 // for how many ms it may be kept
}

const (
	takesOfTrace = 160
	keysOfTrace  = 6 // one for each algorithm
)

func newTrace(seed uint64) *trace {
	r := rand.New(rand.NewPCG(seed, 5))
	tr := &trace{seed: seed, counted: r.IntN(2) * r.IntN(9)}
	for i := range keysOfTrace {
		k := keyOfTrace{limit: randomLimit(r, Algorithm(i+1)), bans: r.IntN(3) == 0}
		tr.keys = append(tr.keys, k)
		tr.buckets = append(tr.buckets, newBucket(k.limit.Algorithm))
	}
	now := randomStart(r, tr.keys[r.IntN(keysOfTrace)].limit.Tick.Milliseconds())
	// In Redis a token bucket keeps its time modulo 2^32 ticks: a clock further back than half of that looks like one ahead.
	newest, furthest := now, tr.keys[TokenBucket-1].limit.Tick.Milliseconds()<<31-1
	for range takesOfTrace {
		keys := r.Perm(keysOfTrace)[:1+r.IntN(4)*r.IntN(2)]
		if key, wait := tr.lastWait(); wait > 0 && r.IntN(4) == 0 {
			now += wait - r.Int64N(2)*tr.keys[key].limit.Tick.Milliseconds()
			keys = []int{key}
			tr.waits++
		} else {
			now += randomPause(r, tr.keys[r.IntN(keysOfTrace)].limit)
		}
		now = max(0, now, newest-furthest)
		newest = max(newest, now)
		tr.take(r, now, keys)
	}
	return tr
}

// lastWait is for how many ms the first hit of the last take was told to wait, or after how many more units come, and its key.
func (tr *trace) lastWait() (key int, ms int64) {
	if len(tr.takes) == 0 {
		return 0, 0
	}
	last := tr.takes[len(tr.takes)-1]
	return last.keys[0], max(last.decisions[0].RetryAfter, last.decisions[0].ResetAfter).Milliseconds()
}

func (tr *trace) take(r *rand.Rand, now int64, keys []int) {
	step := takeOfTrace{now: now, keys: keys}
	var buckets []bucket
	for _, i := range step.keys {
		k := &tr.keys[i]
		if r.IntN(40) == 0 {
			k.limit = changed(r, k.limit)
		}
		k.quota = max(k.quota, k.limit.Quota)
		h := Hit{Limit: k.limit, Cost: randomCost(r, k.limit), Shadow: r.IntN(4) == 0, CountDenied: r.IntN(8) < tr.counted}
		if k.bans {
			h.Ban = time.Duration(magnitude(r, MaxBan.Milliseconds())) * time.Millisecond
			if r.IntN(2) == 0 {
				h.Ban = min(MaxBan, 2*k.limit.Window)
			}
		}
		step.hits = append(step.hits, h)
		if ends := tr.buckets[i].held().ends; ends != 0 && ends <= now {
			tr.buckets[i] = newBucket(k.limit.Algorithm)
			step.expired = append(step.expired, i)
			k.lives = 0
		}
		k.lives = max(k.lives, max(h.longestWait().Milliseconds(), tr.buckets[i].held().ban-now)+h.Limit.law().slack())
		buckets = append(buckets, tr.buckets[i])
	}
	step.lives = tr.keys[step.keys[0]].lives
	step.decisions = make([]Decision, len(step.hits))
	take(step.hits, buckets, now, step.decisions)
	if d := step.decisions[0]; !d.Allowed && d.RetryAfter != Never {
		step.kept = d.RetryAfter.Milliseconds()
	} else if d.Allowed && step.hits[0].Cost > 0 && Judge(step.hits, step.decisions).Allowed {
		step.kept = buckets[0].full(step.hits[0].Limit.law(), now) - now
	}
	tr.takes = append(tr.takes, step)
}

// replay takes the same from Redis. It reports false if that took so long that Redis, whose clock is a real one, may have
// expired a bucket.
func (tr *trace) replay(t *testing.T, client *redis.Client, sum, prefix string) bool {
	ctx := context.Background()
	name := func(i int) string { return prefix + strconv.Itoa(i) }
	pipe := client.Pipeline()
	var replies []*redis.Cmd
	var ttls []*redis.DurationCmd
	for _, step := range tr.takes {
		var keys []string
		for _, i := range step.keys {
			keys = append(keys, name(i))
		}
		packed := appendRequest(nil, step.hits, time.UnixMilli(step.now), 0)
		for _, i := range step.expired {
			pipe.Del(ctx, name(i))
		}
		replies = append(replies, pipe.EvalSha(ctx, sum, keys, packed, step.now))
		ttls = append(ttls, pipe.PTTL(ctx, keys[0]))
	}
	var values []*redis.StringCmd
	for i := range tr.buckets {
		values = append(values, pipe.Get(ctx, name(i)))
	}
	start := time.Now()
	_, _ = pipe.Exec(ctx) // errors stay with their commands
	if time.Since(start) > 900*time.Millisecond {
		return false
	}

	for n, step := range tr.takes {
		reply, err := replies[n].Int64Slice()
		if err != nil {
			t.Fatalf("seed %d, take %d of %+v: %v", tr.seed, n, step, err)
		}
		got, err := decodeReply(step.hits, reply)
		if err != nil || !slices.Equal(got, step.decisions) {
			t.Fatalf("seed %d, take %d at %d of %+v:\n Go: %+v\nLua: %+v %v", tr.seed, n, step.now, step.hits, step.decisions, got, err)
		}
		// Redis's PTTL is -1 for a key that never expires.
		if ttl := ttls[n].Val(); ttl == -1 || step.kept > 0 && ttl < time.Duration(step.kept-900)*time.Millisecond || ttl > time.Duration(step.lives)*time.Millisecond {
			t.Fatalf("seed %d, take %d: the bucket of %+v expires in %v, %d to %d ms are right", tr.seed, n, step.hits[0], ttl, step.kept, step.lives)
		}
	}
	for i, k := range tr.keys {
		if size, most := len(values[i].Val()), 36+4*int(k.quota)+6; k.limit.Algorithm == SlidingLog && size > most {
			t.Fatalf("seed %d: %d bytes for a quota of %d", tr.seed, size, k.quota)
		}
	}
	return true
}
