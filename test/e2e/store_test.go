package e2e

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

func withRedis(url, rest string) string {
	return fmt.Sprintf("store: {redis: {url: %q, timeout: 2s}}\n%s", url, rest)
}

// D3: two daemons that share one Redis admit exactly the limit.
func TestTwoEnvoysWithADaemonEachAdmitExactlyTheLimit(t *testing.T) {
	harness.Binary(t, "envoy")
	config := withRedis(harness.Redis(t).URL, "rules: [{name: a, key: [client_ip], limit: 100/10m}]")
	edges := []*edge{newEdge(t, config), newEdge(t, config)}
	var allowed, refused atomic.Int32
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			e, c := edges[i%2], client("127.0.0.2", false)
			for range 20 {
				resp, err := c.Do(e.request("GET", "/"))
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				switch resp.StatusCode {
				case 200:
					allowed.Add(1)
				case 429:
					refused.Add(1)
				default:
					t.Errorf("status %d", resp.StatusCode)
				}
			}
		})
	}
	clients.Wait()
	if allowed.Load() != 100 || refused.Load() != 220 {
		t.Errorf("%d allowed, %d refused, want 100 and 220", allowed.Load(), refused.Load())
	}
}

// D76, D108, D110: when Redis is gone the rule's own policy decides, whatever Envoy does with errors, and a broken limiter is
// told apart from a refusal.
func TestAnOutageIsAnsweredByTheRulesOwnPolicy(t *testing.T) {
	harness.Binary(t, "envoy")
	redis := harness.Redis(t)
	e := newEdge(t, withRedis(redis.URL, `
rules:
- {name: open, match: {paths: [/open]}, key: [client_ip], limit: 5/1m}
- {name: closed, match: {paths: [/closed]}, key: [client_ip], limit: 5/1m, on_store_error: deny}
- {name: shut, match: {paths: [/shut]}, key: [client_ip], limit: 0/1m}`))
	if a := e.get("/open"); a.code != 200 || a.header.Get("RateLimit") == "" {
		t.Fatalf("with Redis: %d %v", a.code, a.header)
	}
	redis.Kill()
	a := e.get("/open?dead")
	if a.code != 200 || a.header.Get("RateLimit") != "" {
		t.Errorf("allow: %d %v", a.code, a.header)
	}
	if got := e.accessLog("/open?dead"); got["decision"] != "allow" || got["degraded"] != true || got["reason"] != "store" {
		t.Errorf("allow: %v", got)
	}
	a = e.get("/closed?dead")
	if a.code != 503 || a.header.Get("Retry-After") != "1" || a.body != `{"error":"unavailable","retry_after_seconds":1}` {
		t.Errorf("deny: %d %v %q", a.code, a.header, a.body)
	}
	if got := e.accessLog("/closed?dead"); got["decision"] != "deny" || got["reason"] != "store" {
		t.Errorf("deny: %v", got)
	}
	if a := e.get("/shut"); a.code != 429 {
		t.Errorf("a limit of 0 needs no store: %d", a.code)
	}
	redis.Restart()
	if !harness.Eventually(time.Second, func() bool { return e.get("/closed").code == 200 }) {
		t.Error("the limits are not back a second after Redis is")
	}
}

// Nobody restarts it: an edited file takes effect, a broken one does not, and the buckets stay.
func TestAnEditedFileTakesEffectAndKeepsTheBuckets(t *testing.T) {
	e := newEdge(t, "rules: [{name: a, key: [client_ip], limit: 3/10m}]")
	head := fmt.Sprintf("listen: %s\nadmin: %s\n", e.daemon.Addr, strings.TrimPrefix(e.daemon.Admin, "http://"))
	for range 3 {
		e.get("/")
	}
	if a := e.get("/"); a.code != 429 {
		t.Fatalf("the fourth: %d", a.code)
	}
	e.daemon.Configure(head + "rules: [{name: a, key: [client_ip], limmit: 9/10m}]")
	if !harness.Eventually(2*time.Second, func() bool { return strings.Contains(e.daemon.Log.String(), `did you mean \"limit\"`) }) {
		t.Errorf("the misspelt key is not in the log:\n%s", e.daemon.Log)
	}
	if a := e.get("/"); a.code != 429 {
		t.Errorf("after a broken file: %d", a.code)
	}
	e.daemon.Configure(head + "rules: [{name: a, key: [client_ip], limit: 5/10m}]")
	var a answer
	if !harness.Eventually(2*time.Second, func() bool { a = e.get("/"); return a.code == 200 }) || a.header.Get("X-RateLimit-Remaining") != "1" {
		t.Errorf("after raising the limit: %d, remaining %s", a.code, a.header.Get("X-RateLimit-Remaining"))
	}
}
