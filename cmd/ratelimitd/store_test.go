package main

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// fleet starts that many daemons on one Redis and waits until they have found it.
func fleet(t *testing.T, n int, redis *harness.RedisServer, configuration string) []*running {
	t.Helper()
	daemons := make([]*running, n)
	for i := range daemons {
		r := start(t, configuration, "--redis-url", redis.URL)
		eventually(t, 5*time.Second, "ready", func() bool { code, _ := r.get("/readyz"); return code == http.StatusOK })
		daemons[i] = r
	}
	return daemons
}

// patient is a budget that a loaded machine keeps.
const patient = "store: {redis: {url: redis://127.0.0.1, timeout: 2s}}\n"

// D77
func TestInAnOutageAllDaemonsTogetherStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	redis := harness.Redis(t)
	daemons := fleet(t, 3, redis, patient+"on_store_error: local\nreplicas: 3\n"+limits("90/1h"))
	redis.Kill()
	allowed := 0
	for _, r := range daemons {
		for range 40 {
			if r.allowed("/") {
				allowed++
			}
		}
		for series, want := range map[string]string{
			`ratelimitd_requests_total{outcome="degraded"}`: "30",
			`ratelimitd_requests_total{outcome="denied"}`:   "10",
			"ratelimitd_memory_keys":                        "1",
		} {
			if got := r.metric(series); got != want {
				t.Errorf("%s %s, want %s", series, got, want)
			}
		}
	}
	if allowed != 90 {
		t.Errorf("%d of 120 allowed, want 90", allowed)
	}
	daemons[0].write(patient + "on_store_error: local\nreplicas: 2\n" + limits("90/1h"))
	daemons[0].post("/-/reload")
	if !daemons[0].allowed("/") {
		t.Error("refused with a larger share after a reload")
	}
	redis.Restart()
	eventually(t, time.Second, "the whole limit again", func() bool { return daemons[1].allowed("/") })
}

// D94
func TestARefusedClientIsKnownWithoutRedisAndAFreedOneWithinASecond(t *testing.T) {
	t.Parallel()
	redis := harness.Redis(t)
	daemons := fleet(t, 2, redis, patient+limits("10/1h"))
	for range 10 {
		daemons[0].allowed("/")
	}
	for _, r := range daemons {
		for range 20 {
			if r.allowed("/") {
				t.Error("the eleventh is allowed")
			}
		}
		hits, _ := strconv.Atoi(r.metric("ratelimitd_deny_cache_hits_total"))
		taken, _ := strconv.Atoi(r.metric(`ratelimitd_store_duration_seconds_count{result="ok",store="redis"}`))
		if denied := r.metric(`ratelimitd_requests_total{outcome="denied"}`); denied != "20" || hits < 10 || hits+taken < 20 || hits+taken > 30 {
			t.Errorf("%s denied, %d of them by the cache, %d takes from Redis", denied, hits, taken)
		}
	}

	for _, r := range daemons {
		r.write(patient + limits("12/1h"))
		r.post("/-/reload")
		if !r.allowed("/") {
			t.Error("refused after the limit was raised")
		}
	}
	for _, r := range daemons {
		if r.allowed("/") {
			t.Error("the thirteenth is allowed")
		}
	}
	if err := redis.Client().FlushDB(t.Context()).Err(); err != nil { // a DEL by hand
		t.Fatal(err)
	}
	for _, r := range daemons {
		eventually(t, 1200*time.Millisecond, "allowed after a DEL", func() bool { return r.allowed("/") })
	}
}
