package limiter

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// long reports whether the long forms of the tests are to run, as make test-long does.
func long() bool { return os.Getenv("RATELIMITD_LONG") != "" }

// How many examples of each property are tried, unless the command line says so.
func init() {
	checks := "1000"
	if long() {
		checks = "60000"
	}
	_ = flag.Set("rapid.checks", checks)
}

// clock is a store's clock in a test: ms since the Unix epoch.
type clock struct{ ms atomic.Int64 }

// newClock starts where a minute, an hour and a day begin.
func newClock() *clock {
	c := new(clock)
	c.ms.Store(time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }
func (c *clock) time() time.Time         { return time.UnixMilli(c.ms.Load()) }

// newRedisStore returns a started store on that server. A nil clock is Redis's own.
func newRedisStore(t testing.TB, url string, c *clock, change ...func(*RedisOptions)) *Redis {
	t.Helper()
	o := RedisOptions{URL: url, Timeout: 10 * time.Second} // these tests are not about time, and machines are slow
	if c != nil {
		o.Now = c.ms.Load
	}
	for _, f := range change {
		f(&o)
	}
	s, err := NewRedis(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start(context.Background())
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// overStores runs a test over each store, empty and on a clock of its own.
func overStores(t *testing.T, test func(t *testing.T, s Store, c *clock)) {
	t.Run("memory", func(t *testing.T) {
		c := newClock()
		test(t, NewMemory(MemoryOptions{Now: c.time}), c)
	})
	t.Run("redis", func(t *testing.T) {
		c := newClock()
		test(t, newRedisStore(t, harness.Redis(t).URL, c), c)
	})
}

// overAlgorithms runs a test over each store with each algorithm.
func overAlgorithms(t *testing.T, test func(t *testing.T, s Store, c *clock, a Algorithm)) {
	overStores(t, func(t *testing.T, s Store, c *clock) {
		for _, a := range allAlgorithms {
			t.Run(fmt.Sprint(int(a), a), func(t *testing.T) { test(t, s, c, a) })
		}
	})
}

var allAlgorithms = []Algorithm{SlidingLog, GroupedLog, SlidingCounter, TokenBucket, FixedWindow, CalendarWindow}

// limitOf is a limit as the configuration makes it. A calendar's windows are days.
func limitOf(a Algorithm, quota uint32, window time.Duration) Limit {
	l := Limit{Algorithm: a, Quota: quota, Window: window}
	if a == TokenBucket {
		l.Burst = quota
	}
	l.Tick = TickFor(l.Capacity(), window, 0)
	if a == CalendarWindow {
		l.Calendar, l.Window, l.Tick = Calendar{Period: Day}, Calendar{Period: Day}.Longest(), time.Second
	}
	return l
}

func keyOf(n uint64) (k Key) {
	binary.BigEndian.PutUint64(k[8:], n)
	return k
}

func hitOf(key uint64, l Limit, cost uint32) Hit {
	return Hit{Rule: "rule", Key: keyOf(key), Limit: l, Cost: cost}
}

func shadow(h Hit) Hit {
	h.Shadow = true
	return h
}

func mustTake(t testing.TB, s Store, hits ...Hit) []Decision {
	t.Helper()
	d, err := s.Take(context.Background(), hits)
	if err != nil {
		t.Fatal(err)
	}
	if len(d) != len(hits) {
		t.Fatalf("%d decisions for %d hits", len(d), len(hits))
	}
	return d
}

func expect(t testing.TB, what string, d Decision, allowed bool, remaining uint32) {
	t.Helper()
	if d.Allowed != allowed || d.Remaining != remaining {
		t.Fatalf("%s: %+v, want allowed %v, remaining %d", what, d, allowed, remaining)
	}
}
