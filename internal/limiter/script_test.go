package limiter

import (
	"context"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/lua"
	"github.com/ratelimitd/ratelimitd/test/harness"
)

// TestUnitsAreCarriedOverExactly changes the window of a token bucket where the product of both windows is beyond the whole
// numbers that Lua counts with, and one unit decides how the quotient is rounded. D70
func TestUnitsAreCarriedOverExactly(t *testing.T) {
	client, ctx := harness.Redis(t).Client(), context.Background()
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		before, after := 1<<30-r.Int64N(1<<20), 1<<30-r.Int64N(1<<20)
		inverse := new(big.Int).ModInverse(big.NewInt(after), big.NewInt(before))
		if inverse == nil {
			continue
		}
		missing := inverse.Int64() // missing·after is one more than a multiple of before
		value := binary.BigEndian.AppendUint64(nil, uint64(missing))
		value = binary.BigEndian.AppendUint64(value, uint64(aligned))
		value = binary.BigEndian.AppendUint32(value, uint32(before))
		client.Set(ctx, "k", value, time.Hour)
		h := Hit{Limit: Limit{Algorithm: TokenBucket, Quota: 9, Window: time.Duration(after) * time.Millisecond, Burst: 9}, Cost: 1}
		if err := client.Eval(ctx, lua.Driver, []string{"k"}, appendRequest(nil, []Hit{h}, time.UnixMilli(aligned), 0), aligned).Err(); err != nil {
			t.Fatal(err)
		}
		b := &tokenBucket{window: uint32(before), missing: missing, last: aligned}
		takeOne(b, h.Limit, h.Cost, aligned)
		got := []byte(client.Get(ctx, "k").Val())
		if got := int64(binary.BigEndian.Uint64(got)); got != b.missing {
			t.Fatalf("%d units · %d ticks become %d in Redis, %d in Go, in a window of %d", missing, before, got, b.missing, after)
		}
	}
}

func TestTheRingInRedisFollowsTheLiveHits(t *testing.T) {
	client, ctx := harness.Redis(t).Client(), context.Background()
	limit := Limit{Algorithm: SlidingLog, Quota: 1000, Window: time.Minute}
	for _, step := range []struct {
		at     int64
		cost   uint32
		places int64
	}{
		{0, 1, 8}, {0, 7, 8}, {0, 1, 16}, {30_000, 991, 1000}, {60_000, 1, 1000}, {90_000, 1, 8},
	} {
		packed := appendRequest(nil, []Hit{{Limit: limit, Cost: step.cost}}, time.UnixMilli(aligned), 0)
		if err := client.Eval(ctx, lua.Driver, []string{"k"}, packed, aligned+step.at).Err(); err != nil {
			t.Fatal(err)
		}
		if got := (client.StrLen(ctx, "k").Val() - 36) / 4; got != step.places {
			t.Errorf("%d places at %d ms, want %d", got, step.at, step.places)
		}
	}
}

// TestAnExpiryThatGotLostComesBack: the script believes the expiry that a bucket's value tells, or implies, but not for ever. D71
func TestAnExpiryThatGotLostComesBack(t *testing.T) {
	server := harness.Redis(t)
	admin, c := server.Client(), newClock()
	s := newRedisStore(t, server.URL, c)
	for _, a := range allAlgorithms {
		h := hitOf(uint64(a), limitOf(a, 100, time.Hour), 1)
		mustTake(t, s, h)
		admin.Persist(t.Context(), s.key(&h))
		for range 10 {
			c.advance(h.Limit.Window / 4)
			mustTake(t, s, h)
		}
		if ttl := admin.PTTL(t.Context(), s.key(&h)).Val(); ttl <= 0 {
			t.Errorf("%v: the key expires in %v", a, ttl)
		}
	}
}

// TestAValueThatIsNoneOfOursHoldsNobodyUp: Redis can do nothing else while a script runs, so that no number that somebody has put
// into a bucket may keep it running.
func TestAValueThatIsNoneOfOursHoldsNobodyUp(t *testing.T) {
	server := harness.Redis(t)
	client, ctx := server.Client(), context.Background()
	client.ConfigSet(ctx, "proto-max-bulk-len", "1mb") // nor may it make Redis run out of memory here
	s := newRedisStore(t, server.URL, nil, func(o *RedisOptions) { o.Timeout = 5 * time.Second })
	r := rand.New(rand.NewPCG(1, 7))
	for i := range uint64(3000) {
		a := allAlgorithms[i%uint64(len(allAlgorithms))]
		h := hitOf(i, limitOf(a, 1+uint32(r.IntN(200)), time.Minute), 1+uint32(r.IntN(3)))
		h.CountDenied = r.IntN(3) == 0
		now := uint32(time.Now().UnixMilli())
		numbers := []uint32{0, 1, 2, 7, 20, 64, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1, now, now - 1000, now - 70_000, now + 1000}
		var value []byte
		for range 3 + r.IntN(24) {
			value = binary.BigEndian.AppendUint32(value, numbers[r.IntN(len(numbers))])
		}
		client.Set(ctx, s.key(&h), value, time.Minute)
		start := time.Now()
		for range 3 {
			if _, err := s.Take(ctx, []Hit{h}); ErrorReason(err) == "timeout" {
				t.Fatalf("%v: %v, for %v", a, err, value)
			}
		}
		if took := time.Since(start); took > time.Second {
			t.Fatalf("%v: %v, for %v", a, took, value)
		}
	}
}

// TestARequestFailsWithRedissOwnError, by however many hits: what went wrong, and not that a script did.
func TestARequestFailsWithRedissOwnError(t *testing.T) {
	client, ctx := harness.Redis(t).Client(), context.Background()
	client.LPush(ctx, "list", "x")
	hits := []Hit{hitOf(1, limitOf(SlidingLog, 5, time.Minute), 1), hitOf(2, limitOf(SlidingLog, 5, time.Minute), 1)}
	for n := 1; n <= len(hits); n++ {
		keys := []string{"fine", "list"}[len(hits)-n:]
		err := client.Eval(ctx, lua.Driver, keys, appendRequest(nil, hits[:n], time.UnixMilli(aligned), 0), aligned).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE ") {
			t.Errorf("%d hits: %v", n, err)
		}
		if left := client.Exists(ctx, "fine").Val(); left != 0 {
			t.Errorf("%d hits: something was spent", n)
		}
	}
}

// TestAHeadThatCannotBeOursIsNone: a log begins afresh, and does not fail until the value expires.
func TestAHeadThatCannotBeOursIsNone(t *testing.T) {
	client, ctx := harness.Redis(t).Client(), context.Background()
	h := hitOf(1, limitOf(SlidingLog, 5, time.Minute), 1)
	for name, head := range map[string][]uint32{ // but for the expiry: five places, newest and units, oldest and place, size
		"more units than places": {1, 2, 3, 4, 5, 1<<24 | 9, 4 << 24, 8},
		"no newest units":        {1, 2, 3, 4, 5, 4, 4 << 24, 8},
		"six of five":            {1, 2, 3, 4, 5, 3<<24 | 4, 3 << 24, 8},
		"a tick for a size":      {1, 2, 3, 4, 5, 1<<24 | 4, 4 << 24, 1 << 24},
	} {
		value := make([]byte, 4, 100)
		for _, n := range append(head, make([]uint32, 8)...) {
			value = binary.BigEndian.AppendUint32(value, n)
		}
		client.Set(ctx, "k", value, time.Minute)
		reply, err := client.Eval(ctx, lua.Driver, []string{"k"}, appendRequest(nil, []Hit{h}, time.Time{}, 0), 6).Int64Slice()
		if err != nil || reply[0] != 4 {
			t.Errorf("%s: %d left, %v; want 4", name, reply, err)
		}
	}
}
