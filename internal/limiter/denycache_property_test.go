package limiter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// trialRule is a rule of a random schedule; some requests get the other numbers, as an override has them.
type trialRule struct {
	limit, other        Limit
	shadow, countDenied bool
	ban                 time.Duration
}

func randomRules(r *rand.Rand, n int) []trialRule {
	rules := make([]trialRule, n)
	for i := range rules {
		a := Algorithm(1 + r.IntN(len(Algorithms)))
		window := time.Duration(1+r.IntN(6)) * 500 * time.Millisecond
		limit := func() Limit {
			l := limitOf(a, 1+uint32(r.IntN(9)), window)
			if a == TokenBucket {
				l.Burst = 1 + uint32(r.IntN(9))
			}
			l.Tick = []time.Duration{time.Millisecond, 100 * time.Millisecond}[i%2]
			return l
		}
		rules[i] = trialRule{limit: limit(), other: limit(), shadow: r.IntN(5) == 0, countDenied: r.IntN(5) == 0}
		if r.IntN(3) == 0 {
			rules[i].ban = time.Duration(1+r.IntN(8)) * []time.Duration{200 * time.Millisecond, 3 * time.Second}[r.IntN(2)]
		}
	}
	return rules
}

// randomHits is what one request of a random client asks: any of the rules, with any small cost.
func randomHits(r *rand.Rand, rules []trialRule) (hits []Hit) {
	client := r.IntN(3)
	for i, rule := range rules {
		if r.IntN(3) == 0 {
			continue
		}
		h := hitOf(uint64(client<<8|i), rule.limit, []uint32{1, 1, 1, 0, 2, 3}[r.IntN(6)])
		if r.IntN(8) == 0 {
			h.Limit = rule.other
		}
		h.Shadow, h.CountDenied, h.Ban = rule.shadow, rule.countDenied, rule.ban
		hits = append(hits, h)
	}
	return hits
}

// compareWithCache takes one random schedule from a store as it is and from another through a deny cache, and returns how many
// requests were refused by the cache.
func compareWithCache(t *testing.T, seed uint64, steps int, c *clock, plain, behind Store) (hits int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	rules := randomRules(r, 4)
	cached := NewDenyCache(behind, DenyCacheOptions{Now: c.time, Refused: func() { hits++ }})
	for step := range steps {
		c.advance(time.Duration(r.IntN(5)*r.IntN(60)) * time.Millisecond)
		request := randomHits(r, rules)
		got, want := mustTake(t, cached, request...), mustTake(t, plain, request...)
		if g, w := Judge(request, got), Judge(request, want); g.Allowed != w.Allowed {
			t.Fatalf("seed %d, step %d: %+v\nwith the cache %+v\nwithout %+v", seed, step, request, got, want)
		}
		for i := range request {
			if !got[i].Skipped && got[i].Allowed != want[i].Allowed {
				t.Fatalf("seed %d, step %d: hit %d of %+v\nwith the cache %+v\nwithout %+v", seed, step, i, request, got, want)
			}
		}
	}
	return hits
}

// D94
func TestTheDenyCacheChangesNoDecision(t *testing.T) {
	hits := 0
	for seed := range uint64(100) {
		c := newClock()
		hits += compareWithCache(t, seed, 500, c, NewMemory(MemoryOptions{Now: c.time}), NewMemory(MemoryOptions{Now: c.time}))
	}
	if hits < 5_000 {
		t.Errorf("of 50000 requests the cache refused %d: the schedule shows nothing", hits)
	}
}

// D94
func TestTheDenyCacheChangesNoDecisionOfRedis(t *testing.T) {
	url := harness.Redis(t).URL
	for seed := range uint64(10) {
		c := newClock()
		prefixed := func(prefix string) *Redis {
			return newRedisStore(t, url, c, func(o *RedisOptions) { o.KeyPrefix = fmt.Sprint(prefix, seed) })
		}
		if hits := compareWithCache(t, 1000+seed, 500, c, prefixed("plain"), prefixed("cached")); hits == 0 {
			t.Error("the cache refused nothing")
		}
	}
}

// D94: 64 requests at once from a client that is refused, ten times a second, through two daemons.
func TestAFloodFromARefusedClientCostsRedisOneCallASecondForEachDaemon(t *testing.T) {
	server := harness.Redis(t)
	admin, c := server.Client(), newClock()
	daemons := make([]Store, 2)
	for i := range daemons {
		store := newRedisStore(t, server.URL, c)
		awaitLanes(t, store)
		daemons[i] = NewDenyCache(store, DenyCacheOptions{Now: c.time, Timeout: time.Minute})
	}
	h := hitOf(1, limitOf(SlidingLog, 5, time.Hour), 1)
	for range 6 {
		mustTake(t, daemons[0], h)
	}
	mustTake(t, daemons[1], h)
	if err := admin.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	const seconds = 3
	for range 10 * seconds {
		c.advance(100 * time.Millisecond)
		checkFleet(t, fleet(t, 128, h, daemons...), 0)
	}
	stats := admin.Info(t.Context(), "commandstats").Val()
	if want := fmt.Sprintf("cmdstat_evalsha:calls=%d,", seconds*len(daemons)); !strings.Contains(stats, want) {
		t.Errorf("want %s in\n%s", want, stats)
	}

	if err := admin.FlushDB(t.Context()).Err(); err != nil { // a DEL by hand
		t.Fatal(err)
	}
	c.advance(time.Second)
	expect(t, "a second after a DEL", mustTake(t, daemons[0], h)[0], true, 4)
	expect(t, "on the other daemon", mustTake(t, daemons[1], h)[0], true, 3)
}
