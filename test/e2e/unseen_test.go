package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// A rule whose header Envoy keeps back never applies, and nothing fails.
func TestAHeaderThatEnvoyKeepsBackIsNamedAfter10000Requests(t *testing.T) {
	e := newEdge(t, `
rules:
- {name: keyed, key: [header.x-api-key], limit: 1000000/1h, algorithm: fixed_window}
- {name: pro, match: {headers: {x-plan: pro}}, key: [], limit: 1/1h}`,
		edit{deployedHeaders(t), "allowed_headers: { patterns: [ { exact: content-type }, { exact: x-api-key } ] }"})
	c := client("127.0.0.2", true) // one connection
	send := func(n int) {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range n / 20 {
					if a := e.do(c, e.request(http.MethodGet, "/", "X-Api-Key", "k", "X-Plan", "pro")); a.code != 200 {
						t.Errorf("%d, though the rule for x-plan cannot apply", a.code)
						return
					}
				}
			})
		}
		all.Wait()
	}
	lines := func() (list []string) {
		for line := range strings.Lines(e.daemon.Log.String()) {
			if strings.Contains(line, "a header that rules read") {
				list = append(list, line)
			}
		}
		return list
	}
	send(9_980)
	for range 19 {
		e.do(c, e.request(http.MethodGet, "/"))
	}
	if got := lines(); got != nil {
		t.Fatalf("after 9999 requests: %s", got)
	}
	send(40)
	if !harness.Eventually(5*time.Second, func() bool { return lines() != nil }) {
		t.Fatalf("no warning in:\n%s", e.daemon.Log)
	}
	got := lines()
	if len(got) != 1 || !strings.Contains(got[0], `"warn"`) || !strings.Contains(got[0], `"header":"x-plan","read_by":["pro"],"requests":10000`) {
		t.Errorf("%q", got)
	}
}
