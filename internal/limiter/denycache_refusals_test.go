package limiter

import (
	"context"
	"testing"
	"time"
)

func TestTheCacheIsBounded(t *testing.T) {
	cache, s, c := cacheOver(0)
	s.answer = func(Hit) Decision { return Decision{RetryAfter: time.Minute} }
	held := func() (n int) {
		for _, m := range []map[Key]*remembered{cache.known.recent, cache.known.older} {
			for _, r := range m {
				for ; r != nil; r = r.next {
					n++
				}
			}
		}
		return n
	}
	for cost := range uint32(100) {
		mustTake(t, cache, hitOf(1, limitOf(SlidingLog, 100, time.Minute), 1+cost))
	}
	if n := held(); n != maxVariants || cache.known.count != n {
		t.Errorf("%d refusals of one bucket, counted as %d; want %d", n, cache.known.count, maxVariants)
	}
	for key := range uint64(maxRefusals + 100) {
		mustTake(t, cache, hitOf(2+key, minute, 1))
	}
	if n := held(); n != maxRefusals {
		t.Errorf("%d refusals in one generation, want %d", n, maxRefusals)
	}
	s.calls()
	if mustTake(t, cache, hitOf(maxRefusals+100, minute, 1)); s.calls() != 1 {
		t.Error("what does not fit in was not asked")
	}
	c.advance(generation)
	mustTake(t, cache, hitOf(2, minute, 1))
	c.advance(generation)
	if mustTake(t, cache, hitOf(2, minute, 1)); held() != 1 {
		t.Errorf("%d refusals are left after two generations, want the new one", held())
	}
}

func BenchmarkARefusalFromTheCache(b *testing.B) {
	s := &script{answer: refusing(map[uint64]time.Duration{1: time.Hour})}
	cache := NewDenyCache(s, DenyCacheOptions{Now: newClock().time})
	hits := []Hit{hitOf(1, minute, 1), hitOf(2, minute, 1), hitOf(3, minute, 1)}
	mustTake(b, cache, hits...)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = cache.Take(b.Context(), hits)
	}
}

func TestARefusalFromTheCacheAllocatesItsDecisionsAlone(t *testing.T) {
	cache, _, _ := cacheOver(time.Hour)
	hits := []Hit{hitOf(1, minute, 1), hitOf(2, minute, 1)}
	mustTake(t, cache, hits...)
	if n := testing.AllocsPerRun(100, func() { _, _ = cache.Take(context.Background(), hits) }); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}
