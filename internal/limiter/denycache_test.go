package limiter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// script is a store that answers as it is told and keeps what it was asked.
type script struct {
	mu     sync.Mutex
	asked  [][]Hit
	answer func(Hit) Decision
	err    error
}

func (s *script) Take(_ context.Context, hits []Hit) ([]Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, slices.Clone(hits))
	if s.err != nil {
		return nil, s.err
	}
	decisions := make([]Decision, len(hits))
	for i := range hits {
		decisions[i] = s.answer(hits[i])
	}
	return decisions, nil
}

// calls returns how often the store was asked since the last time.
func (s *script) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.asked = nil }()
	return len(s.asked)
}

// refusing answers by the key of a hit: how long it has to wait, 0 for not at all.
func refusing(waits map[uint64]time.Duration) func(Hit) Decision {
	return func(h Hit) Decision {
		for key, wait := range waits {
			if h.Key == keyOf(key) && wait > 0 {
				return Decision{RetryAfter: wait}
			}
		}
		return Decision{Allowed: true, Remaining: 7}
	}
}

// cacheOver returns a cache on a clock of its own, over a store that refuses key 1 for that long, and allows the rest.
func cacheOver(wait time.Duration) (*DenyCache, *script, *clock) {
	c, s := newClock(), &script{answer: refusing(map[uint64]time.Duration{1: wait})}
	return NewDenyCache(s, DenyCacheOptions{Now: c.time}), s, c
}

var minute = limitOf(SlidingLog, 5, time.Minute)

// D94
func TestARefusalIsBelievedForItsWaitOrASecond(t *testing.T) {
	for _, wait := range []time.Duration{300 * time.Millisecond, time.Second, time.Minute} {
		cache, s, c := cacheOver(wait)
		mustTake(t, cache, hitOf(1, minute, 1))
		for at := 100 * time.Millisecond; at < min(wait, time.Second); at += 100 * time.Millisecond {
			c.advance(100 * time.Millisecond)
			if d := mustTake(t, cache, hitOf(1, minute, 1))[0]; d != (Decision{RetryAfter: wait - at}) {
				t.Errorf("after %v of %v: %+v", at, wait, d)
			}
		}
		if n := s.calls(); n != 1 {
			t.Errorf("%v: asked %d times, want once", wait, n)
		}
		c.advance(100 * time.Millisecond)
		if mustTake(t, cache, hitOf(1, minute, 1)); s.calls() != 1 {
			t.Errorf("%v: not asked again when it is over", wait)
		}
	}
}

func TestTheTimeThatATakeNeedsShortensNoWait(t *testing.T) {
	cache, s, c := cacheOver(0)
	s.answer = func(Hit) Decision {
		c.advance(10 * time.Millisecond)
		return Decision{RetryAfter: 50 * time.Millisecond}
	}
	mustTake(t, cache, hitOf(1, minute, 1))
	c.advance(39 * time.Millisecond) // 49 ms after the question, 39 ms after the answer
	if d := mustTake(t, cache, hitOf(1, minute, 1))[0]; d.RetryAfter != 11*time.Millisecond || s.calls() != 1 {
		t.Errorf("%+v, want a wait that counts from the answer", d)
	}
	c.advance(time.Millisecond)
	if mustTake(t, cache, hitOf(1, minute, 1)); s.calls() != 1 {
		t.Error("believed for longer than its wait counts from the question")
	}
}

func TestOnlyAHitLikeTheRefusedOneIsRefusedForIt(t *testing.T) {
	cache, s, _ := cacheOver(time.Minute)
	base := hitOf(1, minute, 1)
	mustTake(t, cache, base)
	s.calls()
	raised, longer, tokens := base, base, base
	raised.Limit.Quota, longer.Limit.Window, tokens.Limit.Burst = 6, time.Hour, 3
	yearly := base
	yearly.Limit.Calendar = Calendar{Period: Year}
	dearer, banning, other := base, base, hitOf(2, minute, 1)
	dearer.Cost, banning.Ban = 2, time.Minute
	for what, h := range map[string]Hit{"quota": raised, "window": longer, "burst": tokens, "calendar": yearly, "cost": dearer,
		"ban": banning, "bucket": other, "shadow": shadow(base)} {
		if mustTake(t, cache, h); s.calls() != 1 {
			t.Errorf("another %s: not asked", what)
		}
	}
	if mustTake(t, cache, base); s.calls() != 0 {
		t.Error("the refused hit itself: asked")
	}
}

func TestARequestRefusedFromMemoryStillTakesWhatIsNotHeldBack(t *testing.T) {
	cache, s, c := cacheOver(time.Minute)
	refused, other, trial, counted := hitOf(1, minute, 1), hitOf(2, minute, 1), shadow(hitOf(3, minute, 1)), hitOf(4, minute, 1)
	counted.CountDenied = true
	mustTake(t, cache, refused)
	s.calls()
	c.advance(100 * time.Millisecond)
	want := []Decision{{Skipped: true}, {Allowed: true, Remaining: 7}, {RetryAfter: 59900 * time.Millisecond}}
	if got := mustTake(t, cache, other, trial, refused); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(s.asked) != 1 || !slices.Equal(s.asked[0], []Hit{trial}) {
		t.Errorf("asked %+v, want the shadow hit alone", s.asked)
	}
	s.calls()
	want = []Decision{{RetryAfter: 59900 * time.Millisecond}, {Allowed: true, Remaining: 7}, {Skipped: true}}
	if got := mustTake(t, cache, refused, counted, other); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if asked := s.asked[0]; len(asked) != 2 || asked[0] != counted || asked[1].Shadow || !asked[1].Limit.NeverPasses(0) {
		t.Errorf("asked %+v, want the counted hit as a part of a request that is refused", asked)
	}
	s.err = errors.New("gone")
	if got := mustTake(t, cache, refused, trial); !slices.Equal(got, []Decision{{RetryAfter: 59900 * time.Millisecond}, {Skipped: true}}) {
		t.Errorf("when the store fails: %+v", got)
	}
}

func TestARefusalOfAHitThatIsCountedIsNotRemembered(t *testing.T) {
	cache, s, _ := cacheOver(time.Minute)
	counted := hitOf(1, minute, 1)
	counted.CountDenied = true
	for range 3 {
		mustTake(t, cache, counted)
	}
	if n := s.calls(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
}

func TestWhatCanNeverPassIsRefusedWithoutAsking(t *testing.T) {
	cache, s, _ := cacheOver(0)
	never, banning := hitOf(1, minute, 6), hitOf(2, minute, 1)
	if got := mustTake(t, cache, never, hitOf(2, minute, 1)); !slices.Equal(got, []Decision{{RetryAfter: Never}, {Skipped: true}}) || s.calls() != 0 {
		t.Errorf("%+v", got)
	}
	banning.Ban = time.Minute
	if mustTake(t, cache, never, banning); s.calls() != 1 {
		t.Error("a hit that may start a ban was not asked")
	}
	if mustTake(t, cache, shadow(never), hitOf(2, minute, 1)); s.calls() != 1 {
		t.Error("a shadow hit that can never pass has refused the request")
	}
}

func TestAHitThatMayStartABanIsAlwaysAsked(t *testing.T) {
	cache, s, c := cacheOver(time.Minute)
	refused, banning := hitOf(1, minute, 1), hitOf(2, minute, 1)
	banning.Ban = 300 * time.Millisecond
	mustTake(t, cache, refused)
	for range 2 { // allowed, so that it would be the refusal that starts the ban
		if mustTake(t, cache, refused, banning); len(s.asked) == 0 || len(s.asked[len(s.asked)-1]) != 2 {
			t.Errorf("asked %+v, want both hits", s.asked)
		}
	}
	look := banning
	look.Cost = 0
	s.calls()
	if mustTake(t, cache, refused, look); s.calls() != 0 {
		t.Error("a look starts no ban, but was asked")
	}

	s.answer = refusing(map[uint64]time.Duration{1: time.Minute, 2: time.Minute})
	mustTake(t, cache, refused, banning) // the ban begins
	s.calls()
	c.advance(299 * time.Millisecond)
	got := mustTake(t, cache, refused, banning)
	if s.calls() != 0 || got[1].BanLeft == 0 || got[0].BanLeft > 0 || got[0].Allowed || got[1].Allowed {
		t.Errorf("while the ban lasts: %+v", got)
	}
	c.advance(time.Millisecond)
	if mustTake(t, cache, banning); s.calls() != 1 {
		t.Error("when the ban is over the next refusal starts another, but nothing was asked")
	}
}

func TestTheToldWaitIsTheLongestEvenWhenThatRunsOutFirst(t *testing.T) {
	cache, s, c := cacheOver(0)
	s.answer = refusing(map[uint64]time.Duration{1: 5 * time.Second, 2: time.Hour})
	brief, long := hitOf(1, minute, 1), hitOf(2, minute, 1)
	mustTake(t, cache, brief, long)
	c.advance(900 * time.Millisecond)
	s.answer = refusing(map[uint64]time.Duration{1: 4 * time.Second, 2: time.Hour})
	c.advance(100 * time.Millisecond)
	mustTake(t, cache, brief)
	s.calls()
	if v := Judge([]Hit{brief, long}, mustTake(t, cache, brief, long)); v.RetryAfter != time.Hour || s.calls() != 1 {
		t.Errorf("%+v, want an hour's wait", v)
	}
}

// D94: raised by a reload, or deleted by hand.
func TestAFreedBucketIsFeltWithinASecond(t *testing.T) {
	cache, s, c := cacheOver(time.Hour)
	mustTake(t, cache, hitOf(1, minute, 1))
	s.answer = refusing(nil)
	c.advance(999 * time.Millisecond)
	expect(t, "just before", mustTake(t, cache, hitOf(1, minute, 1))[0], false, 0)
	c.advance(time.Millisecond)
	expect(t, "after a second", mustTake(t, cache, hitOf(1, minute, 1))[0], true, 7)
	expect(t, "the next", mustTake(t, cache, hitOf(1, minute, 1))[0], true, 7)
}

func TestASkippedHitIsNoRefusal(t *testing.T) {
	cache, s, _ := cacheOver(0)
	s.answer = func(Hit) Decision { return Decision{Skipped: true} }
	for range 2 {
		mustTake(t, cache, hitOf(1, minute, 1))
	}
	if n := s.calls(); n != 2 {
		t.Errorf("asked %d times, want twice", n)
	}
}

func TestAResetForgetsEverything(t *testing.T) {
	cache, s, _ := cacheOver(time.Hour)
	mustTake(t, cache, hitOf(1, minute, 1))
	cache.Reset()
	if mustTake(t, cache, hitOf(1, minute, 1)); s.calls() != 2 {
		t.Error("not asked after a reset")
	}
}

func TestAnErrorIsNoRefusal(t *testing.T) {
	cache, s, c := cacheOver(time.Hour)
	s.err = errors.New("gone")
	for range 2 {
		if _, err := cache.Take(t.Context(), []Hit{hitOf(1, minute, 1)}); !errors.Is(err, s.err) {
			t.Fatal(err)
		}
	}
	s.err = nil
	mustTake(t, cache, hitOf(1, minute, 1))
	c.advance(time.Second)
	s.err = errors.New("gone again")
	if _, err := cache.Take(t.Context(), []Hit{hitOf(1, minute, 1)}); !errors.Is(err, s.err) {
		t.Errorf("%v, want the store's error once the refusal has run out", err)
	}
}
