package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// gate is a store in which every take waits to be let through, until its caller's time is over.
type gate struct {
	Store
	through chan struct{}
	inside  atomic.Int32
}

func (g *gate) Take(ctx context.Context, hits []Hit) ([]Decision, error) {
	g.inside.Add(1)
	defer g.inside.Add(-1)
	select {
	case <-g.through:
		return g.Store.Take(ctx, hits)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// crowd is 64 requests that come at once for a client whose remembered refusal has just run out.
type crowd struct {
	*script
	gate *gate

	mu                       sync.Mutex
	allowed, refused, failed int
}

const crowdSize = 64

// gather starts a crowd. From now on the store answers so.
func gather(answer func(Hit) Decision, err error) *crowd {
	s := &script{answer: refusing(map[uint64]time.Duration{1: time.Minute})}
	c := &crowd{script: s, gate: &gate{Store: s, through: make(chan struct{})}}
	cache := NewDenyCache(s, DenyCacheOptions{})
	_, _ = cache.Take(context.Background(), []Hit{hitOf(1, minute, 1)})
	time.Sleep(time.Second) // in the bubble's time
	s.answer, s.err, cache.next = answer, err, c.gate
	s.calls()
	for range crowdSize {
		go func() {
			d, err := cache.Take(context.Background(), []Hit{hitOf(1, minute, 1)})
			c.mu.Lock()
			defer c.mu.Unlock()
			switch {
			case err != nil:
				c.failed++
			case d[0].Allowed:
				c.allowed++
			default:
				c.refused++
			}
		}()
	}
	return c
}

// letThrough answers up to that many of the takes that ask, one after the other, and returns how many there were.
func (c *crowd) letThrough(n int) (asked int) {
	for range n {
		synctest.Wait()
		select {
		case c.gate.through <- struct{}{}:
		default:
			return asked
		}
		asked++
	}
	synctest.Wait()
	return asked
}

func (c *crowd) expect(t *testing.T, what string, allowed, refused, failed int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.allowed != allowed || c.refused != refused || c.failed != failed {
		t.Errorf("%s: %d allowed, %d refused, %d failed; want %d, %d and %d", what,
			c.allowed, c.refused, c.failed, allowed, refused, failed)
	}
}

func TestOneAsksForAllWhenARefusalRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(refusing(map[uint64]time.Duration{1: time.Minute}), nil)
		synctest.Wait()
		c.expect(t, "before the answer", 0, 0, 0)
		asked := c.letThrough(crowdSize)
		c.expect(t, "after it", 0, crowdSize, 0)
		if asked != 1 {
			t.Errorf("the store was asked %d times, want once", asked)
		}
	})
}

// Five places have become free: not all of the crowd ask about them.
func TestFewAskMoreThanMayPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := 5
		c := gather(func(Hit) Decision { // the script holds its lock
			if places--; places >= 0 {
				return Decision{Allowed: true, Remaining: uint32(places)}
			}
			return Decision{RetryAfter: time.Minute}
		}, nil)
		asked := c.letThrough(crowdSize)
		c.expect(t, "in the end", 5, crowdSize-5, 0)
		if asked > 16 {
			t.Errorf("the store was asked %d times about 5 free places", asked)
		}
	})
}

func TestAfterAnErrorAllAskForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(nil, errors.New("gone"))
		c.letThrough(1)
		c.expect(t, "after the first", 0, 0, 1)
		if n := c.gate.inside.Load(); n != crowdSize-1 {
			t.Errorf("then %d ask at once, want the others", n)
		}
		c.letThrough(crowdSize)
		c.expect(t, "in the end", 0, 0, crowdSize)
	})
}

func TestWhoHasWaitedForHalfItsBudgetAsksForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(refusing(nil), nil)
		time.Sleep(DefaultRedisTimeout/2 - time.Millisecond)
		synctest.Wait()
		if n := c.gate.inside.Load(); n != 1 {
			t.Errorf("%d ask just before, want one", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := c.gate.inside.Load(); n != crowdSize {
			t.Errorf("%d ask then, want all", n)
		}
		c.letThrough(crowdSize)
		c.expect(t, "in the end", crowdSize, 0, 0)
	})
}

// A client that has much room again must not be kept waiting until it counts as unlucky.
func TestManyAskAtOnceWhenManyMayPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(func(Hit) Decision { return Decision{Allowed: true, Remaining: 1000} }, nil)
		c.letThrough(1)
		c.expect(t, "the first", 1, 0, 0)
		if n := c.gate.inside.Load(); n != crowdSize-1 {
			t.Errorf("then %d ask at once, want the others", n)
		}
		c.letThrough(crowdSize)
		c.expect(t, "in the end", crowdSize, 0, 0)
	})
}

func TestAClientOfWhichNothingIsRememberedNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: refusing(map[uint64]time.Duration{1: time.Minute})}
		g := &gate{Store: s, through: make(chan struct{}, crowdSize)}
		cache := NewDenyCache(g, DenyCacheOptions{})
		for range crowdSize {
			go func() { _, _ = cache.Take(context.Background(), []Hit{hitOf(1, minute, 1)}) }()
		}
		synctest.Wait() // all of them are in the store
		for range crowdSize {
			g.through <- struct{}{}
		}
		synctest.Wait()
		if n := s.calls(); n != crowdSize {
			t.Errorf("%d of %d asked", n, crowdSize)
		}
	})
}
