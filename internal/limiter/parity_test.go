package limiter

import (
	"context"
	"fmt"
	"math"
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
// every decision, and whether each bucket is kept for long enough. D4, D24, D70, D92
func TestGoAndLuaDecideTheSame(t *testing.T) {
	traces := 700
	if testing.Short() {
		traces = 100
	}
	client := harness.Redis(t).Client()
	sum, err := client.ScriptLoad(context.Background(), lua.Driver).Result()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(traces) {
		trace := newTrace(seed)
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
}

// trace is a sequence of takes from a few buckets, and what the Go algorithms made of it.
type trace struct {
	seed    uint64
	counted int // how many of 8 hits are counted when refused
	buckets []bucket
	keys    []keyOfTrace
	takes   []takeOfTrace
}

type keyOfTrace struct {
	limit Limit  // as last changed
	quota uint32 // the largest so far
	bans  bool   // each refusal does
}

type takeOfTrace struct {
	now       int64
	expired   []int // keys that are missing by now
	keys      []int // hits[i] is of keys[i]
	hits      []Hit
	decisions []Decision
	kept      int64 // for how many ms the bucket of keys[0] must be kept from now on
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
	for range takesOfTrace {
		now = max(0, now+randomPause(r, tr.keys[r.IntN(keysOfTrace)].limit))
		tr.take(r, now)
	}
	return tr
}

func (tr *trace) take(r *rand.Rand, now int64) {
	step := takeOfTrace{now: now, keys: r.Perm(keysOfTrace)[:1+r.IntN(4)*r.IntN(2)]}
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
		}
		buckets = append(buckets, tr.buckets[i])
	}
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
		if ttl := ttls[n].Val(); ttl == -1 || step.kept > 0 && ttl < time.Duration(step.kept-900)*time.Millisecond {
			t.Fatalf("seed %d, take %d: the bucket of %+v expires in %v, %d ms are needed", tr.seed, n, step.hits[0], ttl, step.kept)
		}
	}
	for i, k := range tr.keys {
		if size, most := len(values[i].Val()), 20+4*int(k.quota)+6; k.limit.Algorithm == SlidingLog && size > most {
			t.Fatalf("seed %d: %d bytes for a quota of %d", tr.seed, size, k.quota)
		}
	}
	return true
}

// randomLimit draws quotas and windows over all magnitudes, within the bounds that Limit's tick guarantees.
func randomLimit(r *rand.Rand, a Algorithm) Limit {
	if a == CalendarWindow {
		c := Calendar{Period: Period(1 + r.IntN(4)), Zone: calendarZones[r.IntN(len(calendarZones))]}
		quota := uint32(magnitude(r, []int64{100, math.MaxUint32}[r.IntN(2)]))
		return Limit{Algorithm: a, Quota: quota, Window: c.Longest(), Calendar: c, Tick: time.Second}
	}
	tick := []int64{1, 1, 10, 100, 1000, 100_000}[r.IntN(6)]
	window := magnitude(r, 1<<30)
	if r.IntN(2) == 0 {
		window = 1 + r.Int64N(1000)
	}
	window = min(window, MaxWindow.Milliseconds()/tick)
	most := min(math.MaxUint32, (1<<51-1)/window)
	if a == SlidingLog {
		most = 2000
	}
	if r.IntN(2) == 0 {
		most = min(most, 1+r.Int64N(100))
	}
	l := Limit{
		Algorithm: a,
		Quota:     uint32(magnitude(r, most)),
		Window:    time.Duration(window*tick) * time.Millisecond,
		Tick:      time.Duration(tick) * time.Millisecond,
	}
	if a == TokenBucket {
		longest := float64(MaxBurstLifetime.Milliseconds()/tick) * float64(l.Quota) / float64(window)
		l.Burst = uint32(magnitude(r, int64(min(float64(most), longest))))
	}
	if r.IntN(50) == 0 {
		l.Quota, l.Burst = 0, 0
	}
	return l
}

// changed is the limit of the same bucket after a reload.
func changed(r *rand.Rand, l Limit) Limit {
	for {
		next := randomLimit(r, l.Algorithm)
		if l.Algorithm == CalendarWindow {
			return next
		}
		next.Window = min(next.Window/next.Tick, MaxWindow/l.Tick) * l.Tick
		if r.IntN(2) == 0 {
			next.Window = l.Window
		}
		next.Tick = l.Tick
		ticks := float64(next.WindowTicks())
		if float64(next.Burst)*ticks <= float64(MaxBurstLifetime/next.Tick)*float64(next.Quota) &&
			ticks*float64(max(next.Quota, next.Burst)) < 1<<51 {
			return next
		}
	}
}

var calendarZones = func() (zones []*time.Location) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Havana", "Asia/Kathmandu"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		zones = append(zones, zone)
	}
	return zones
}()

// magnitude is 1 … most, with all numbers of digits equally likely.
func magnitude(r *rand.Rand, most int64) int64 {
	if most <= 1 {
		return 1
	}
	return min(most, int64(math.Exp(r.Float64()*math.Log(float64(most)+1))))
}

// randomStart is a moment of this century, often one where the number of ticks wraps.
func randomStart(r *rand.Rand, tick int64) int64 {
	now := 1_700_000_000_000 + r.Int64N(1_000_000_000_000)
	if wrap := tick << 31; tick <= 100 && r.IntN(2) == 0 {
		now = now/wrap*wrap + (r.Int64N(200)-100)*tick
	}
	return now
}

// randomPause is the time between two takes in ms: none, a part of a window, more than one, or a step back.
func randomPause(r *rand.Rand, l Limit) int64 {
	window := l.Window.Milliseconds()
	switch r.IntN(40) {
	case 0:
		return window + r.Int64N(window+1)
	case 1:
		return 3*window + 5000
	case 2:
		return -r.Int64N(window/8 + 2)
	case 3:
		return -r.Int64N(3*window + 1)
	case 4, 5, 6, 7, 8, 9, 10, 11, 12:
		return 0
	case 13, 14, 15, 16:
		return r.Int64N(l.Tick.Milliseconds() + 1)
	}
	return r.Int64N(window/16 + 2)
}

func randomCost(r *rand.Rand, l Limit) uint32 {
	switch r.IntN(12) {
	case 0:
		return 0
	case 1:
		return l.Capacity() + uint32(r.IntN(2))
	case 2, 3, 4:
		return uint32(magnitude(r, int64(l.Capacity())))
	case 5, 6, 7:
		return l.Capacity()/16 + 1
	}
	return 1
}
