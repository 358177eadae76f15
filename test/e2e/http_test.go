package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// example is config.example.yaml without its addresses.
func example(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "listen:") && !strings.HasPrefix(line, "admin:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestTheExampleRefusesThe101stRequestAndStarvesNoOtherRoute(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "r.sock")
	for name, addr := range map[string]string{"tcp": "", "unix socket": socket} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, http2 %v", name, http2), func(t *testing.T) {
				e := newEdgeAt(t, addr, example(t))
				c := client("127.0.0.2", http2)
				for i := 1; i <= 100; i++ {
					a := e.do(c, e.request("GET", "/api/videos/trending?page="+strconv.Itoa(i)))
					if a.code != 200 || a.header.Get("X-RateLimit-Limit") != "100" || a.header.Get("X-RateLimit-Remaining") != strconv.Itoa(100-i) {
						t.Fatalf("request %d: %d, limit %s, remaining %s", i, a.code, a.header["X-Ratelimit-Limit"], a.header["X-Ratelimit-Remaining"])
					}
				}
				a := e.do(c, e.request("GET", "/api/videos/trending"))
				if a.code != 429 || (a.proto == 2) != http2 {
					t.Fatalf("request 101: %d over HTTP/%d", a.code, a.proto)
				}
				wait, err := strconv.Atoi(a.header.Get("Retry-After"))
				if err != nil || wait < 1 || wait > 120 {
					t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
				}
				for header, want := range map[string]string{
					"Content-Type":          "application/json",
					"X-RateLimit-Limit":     "100",
					"X-RateLimit-Remaining": "0",
					"X-RateLimit-Reset":     strconv.Itoa(wait),
					"RateLimit-Policy":      `"trending";q=100;w=60`,
					"RateLimit":             fmt.Sprintf(`"trending";r=0;t=%d`, wait),
				} {
					if got := a.header.Values(header); len(got) != 1 || got[0] != want {
						t.Errorf("%s: %q, want %q", header, got, want)
					}
				}
				if want := fmt.Sprintf(`{"error":"rate_limited","retry_after_seconds":%d}`, wait); a.body != want {
					t.Errorf("body %q, want %q", a.body, want)
				}
				if a := e.do(c, e.request("GET", "/api/videos/search?q=x")); a.code != 200 || a.header.Get("X-RateLimit-Remaining") != "19" {
					t.Errorf("another route: %d, remaining %q", a.code, a.header.Get("X-RateLimit-Remaining"))
				}
				if a := e.do(client("127.0.0.3", http2), e.request("GET", "/api/videos/trending")); a.code != 200 {
					t.Errorf("another client: %d", a.code)
				}
			})
		}
	}
}

// D25: an obeyed Retry-After is not answered with another 429.
func TestARetryAfterThatIsObeyedPasses(t *testing.T) {
	for _, algorithm := range []string{"sliding_log", "grouped_log", "sliding_counter", "token_bucket", "fixed_window"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, "rules: [{name: a, key: [client_ip], limit: 2/1s500ms, algorithm: "+algorithm+"}]")
			var a answer
			for range 6 { // a window may end between two of them
				if a = e.get("/"); a.code == 429 {
					break
				}
			}
			wait, err := strconv.Atoi(a.header.Get("Retry-After"))
			if a.code != 429 || err != nil {
				t.Fatalf("%d, Retry-After %q", a.code, a.header.Get("Retry-After"))
			}
			time.Sleep(time.Duration(wait) * time.Second) // the promise is about real time
			if a := e.get("/"); a.code != 200 {
				t.Errorf("after %d s: %d, Retry-After %s", wait, a.code, a.header.Get("Retry-After"))
			}
		})
	}
}

// D32: the client sees the numbers of allowed requests, the upstream does not.
func TestAllowedAnswersCarryTheNumbersAndUpstreamRequestsDoNot(t *testing.T) {
	e := newEdge(t, "rules: [{name: a, key: [client_ip], limit: 10/1m}]")
	a := e.get("/x")
	if got := a.header.Values("X-RateLimit-Limit"); len(got) != 1 || got[0] != "10" {
		t.Errorf("X-RateLimit-Limit %q: the upstream's own must be replaced", got)
	}
	sent, _ := e.upstream.seen()
	for name := range sent {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			t.Errorf("the upstream was sent %s", name)
		}
	}
}

// D100: the access log says which rule refused.
func TestTheAccessLogSaysWhichRuleRefused(t *testing.T) {
	e := newEdge(t, `
rules:
- {name: wide, key: [client_ip], limit: 10/1m}
- {name: narrow, key: [client_ip], limit: 1/1m}
- {name: trial, key: [client_ip], limit: 1/1m, mode: shadow}`)
	e.get("/first")
	if got := e.accessLog("/first"); got["decision"] != "allow" || got["rule"] != "narrow" || got["remaining"] != 0.0 {
		t.Errorf("allowed: %v", got)
	}
	e.get("/second")
	got := e.accessLog("/second")
	if got["decision"] != "deny" || got["rule"] != "narrow" || got["reason"] != "limit" || got["retry_after_s"] == nil {
		t.Errorf("refused: %v", got)
	}
	if shadow, _ := got["shadow_denied"].([]any); len(shadow) != 1 || shadow[0] != "trial" {
		t.Errorf("shadow_denied: %v", got["shadow_denied"])
	}
}

// D111: an own status; HEAD has no body.
func TestAnOwnStatusAndNoBodyForHead(t *testing.T) {
	e := newEdge(t, "response: {status: 503, headers: []}\nrules: [{name: a, key: [client_ip], limit: 0/1m}]")
	a := e.get("/")
	if a.code != 503 || a.body != `{"error":"rate_limited"}` || a.header.Get("Retry-After") != "" || a.header.Get("RateLimit") != "" {
		t.Errorf("%d %q %v", a.code, a.body, a.header)
	}
	a = e.do(client("127.0.0.2", false), e.request(http.MethodHead, "/"))
	if a.code != 503 || a.body != "" {
		t.Errorf("HEAD: %d %q", a.code, a.body)
	}
}

// D121: exempt clients are not limited and see no numbers.
func TestAnAllowRuleExemptsAClient(t *testing.T) {
	e := newEdge(t, `
rules:
- {name: limit, key: [client_ip], limit: 1/1m}
- {name: office, action: allow, match: {client_ips: [127.0.0.2]}}
- {name: blocked, action: deny, match: {client_ips: [127.0.0.9]}}`)
	for range 5 {
		if a := e.get("/"); a.code != 200 || a.header.Get("RateLimit") != "" {
			t.Fatalf("%d %v", a.code, a.header)
		}
	}
	a := e.do(client("127.0.0.9", false), e.request("GET", "/"))
	if a.code != 403 || a.body != `{"error":"denied"}` || a.header.Get("Retry-After") != "" {
		t.Errorf("denied: %d %q", a.code, a.body)
	}
}

// Repeated headers arrive apart (header_map) or joined (headers): neither makes a fresh bucket for each request. D50
func TestARepeatedKeyHeaderMakesNoFreshBucket(t *testing.T) {
	for name, edits := range map[string][]edit{"raw": nil, "joined": {{"encode_raw_headers: true", "encode_raw_headers: false"}}} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, "rules: [{name: a, key: [header.x-api-key], limit: 2/1m}]", edits...)
			codes := ""
			for i := range 4 {
				codes += fmt.Sprint(e.get("/", "X-Api-Key", "k1", "X-Api-Key", strconv.Itoa(i)).code, " ")
			}
			if codes != "200 200 429 429 " {
				t.Error(codes)
			}
			if a := e.get("/", "X-Api-Key", "k1"); a.code != 200 {
				t.Errorf("the single value's own bucket: %d", a.code)
			}
		})
	}
}

// Invalid UTF-8 in metadata must not let a request pass unlimited, not even where Envoy fails open.
func TestInvalidUTF8InMetadataIsNoWayAround(t *testing.T) {
	e := newEdge(t, "rules: [{name: a, key: [client_ip], limit: 1/1m}]",
		edit{"failure_mode_allow: false\n", "failure_mode_allow: true\n"},
		edit{"              validate_mutations: true", "              validate_mutations: true\n              metadata_context_namespaces: [ envoy.lb ]"},
		edit{"          - name: envoy.filters.http.ext_authz\n", `          - name: envoy.filters.http.header_to_metadata
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config
              request_rules: [ { header: x-tier, on_header_present: { metadata_namespace: envoy.lb, key: tier, type: STRING } } ]
          - name: envoy.filters.http.ext_authz
`})
	codes := ""
	for range 3 {
		codes += fmt.Sprint(e.get("/", "X-Tier", "s\xff").code, " ")
	}
	if codes != "200 429 429 " {
		t.Errorf("%s; ext_authz errors: %d", codes, e.envoy.Counter(t, "http.edge.ext_authz.ratelimitd.error"))
	}
}
