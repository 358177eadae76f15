package e2e

import (
	"strconv"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// onBothStores runs a test on a configuration of these rules, once with the buckets in memory and once in Redis.
func onBothStores(t *testing.T, rules string, test func(t *testing.T, config string)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, rules)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		harness.Binary(t, "envoy")
		test(t, withRedis(harness.Redis(t).URL, rules))
	})
}

// untilRefused asks for a path until it is refused, at most so often, and returns the Retry-After.
func (e *edge) untilRefused(path string, most int) (wait int) {
	e.t.Helper()
	for range most {
		if a := e.get(path); a.code == 429 {
			return e.retryAfter(a)
		}
	}
	e.t.Fatalf("%d requests for %s and none is refused", most, path)
	return 0
}

// retryAfter is the wait of a refusal.
func (e *edge) retryAfter(a answer) int {
	e.t.Helper()
	wait, err := strconv.Atoi(a.header.Get("Retry-After"))
	if a.code != 429 || err != nil {
		e.t.Fatalf("%d, Retry-After %q", a.code, a.header.Get("Retry-After"))
	}
	return wait
}

// D118: who goes on asking neither gets in before the ban is over nor later than that.
func TestABanEndsWhenItSaidHoweverOftenTheClientAsks(t *testing.T) {
	onBothStores(t, `
rules:
- {name: long, match: {paths: [/long/*]}, key: [client_ip], limit: 20/10s, ban: 60s}
- {name: short, match: {paths: [/short]}, key: [client_ip], limit: 2/500ms, ban: 3s}`,
		func(t *testing.T, config string) {
			e := newEdge(t, config)
			if wait := e.untilRefused("/long/a", 21); wait != 60 {
				t.Errorf("the first refusal says %d s, want 60", wait)
			}
			if wait := e.retryAfter(e.get("/long/again")); wait < 50 || wait > 60 {
				t.Errorf("the next one says %d s", wait)
			}
			if reason := e.accessLog("/long/again")["reason"]; reason != "ban" {
				t.Errorf("its reason is %v", reason)
			}

			start := time.Now()
			e.untilRefused("/short", 10)
			for a := e.get("/short"); a.code != 200; a = e.get("/short") {
				if e.retryAfter(a); time.Since(start) > 6*time.Second {
					t.Fatal("still banned after twice the time")
				}
				time.Sleep(50 * time.Millisecond) // a ban is about real time
			}
			if took := time.Since(start); took < 3*time.Second {
				t.Errorf("let in after %v", took)
			}
		})
}

// D118: a ban is known to every daemon that shares the Redis, also to one that starts later.
func TestABanOutlivesTheDaemon(t *testing.T) {
	harness.Binary(t, "envoy")
	config := withRedis(harness.Redis(t).URL, "rules: [{name: a, key: [client_ip], limit: 1/1s, ban: 10m}]")
	newEdge(t, config).untilRefused("/", 10)
	time.Sleep(1100 * time.Millisecond) // the window itself is over
	later := newEdge(t, config)
	if wait := later.retryAfter(later.get("/")); wait < 500 {
		t.Errorf("Retry-After %d", wait)
	}
}

func TestAClientThatKeepsTryingStaysOutWhereRefusalsCount(t *testing.T) {
	onBothStores(t, "rules: [{name: a, key: [client_ip], limit: 2/1s, count_denied: true}]", func(t *testing.T, config string) {
		e := newEdge(t, config)
		wait := e.untilRefused("/", 20)
		for start := time.Now(); time.Since(start) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
			wait = e.retryAfter(e.get("/"))
		}
		time.Sleep(time.Duration(wait) * time.Second)
		if a := e.get("/"); a.code != 200 {
			t.Errorf("after %d s of silence: %d", wait, a.code)
		}
	})
}

// D114, D115
func TestACalendarWindowEndsAtMidnightInItsTimeZone(t *testing.T) {
	const name = "Asia/Kolkata" // half an hour beside all that a mistake would take it for
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	config := "rules: [{name: a, key: [client_ip], limit: 2/day, algorithm: fixed_window, timezone: " + name + "}]"
	onBothStores(t, config, func(t *testing.T, config string) {
		e := newEdge(t, config)
		before := time.Now().In(zone)
		wait := e.untilRefused("/", 3)
		midnight := time.Date(before.Year(), before.Month(), before.Day()+1, 0, 0, 0, 0, zone)
		if least, most := time.Until(midnight).Seconds(), midnight.Sub(before).Seconds()+1; float64(wait) < least || float64(wait) > most {
			t.Errorf("Retry-After %d, want %.1f to %.1f", wait, least, most)
		}
		if policy := e.get("/").header.Get("RateLimit-Policy"); policy != `"a";q=2` {
			t.Errorf("RateLimit-Policy %s", policy)
		}
	})
}
