// Package e2e tests the promises to clients where they are made: ratelimitd behind a real Envoy, on deploy/envoy.yaml.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

var ratelimitd string // the binary under test

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &ratelimitd)) }

// edit replaces old by new in deploy/envoy.yaml, where old must stand exactly once.
type edit struct{ old, new string }

// initialMetadata is how the client's address is sent that `client_ip: {from: envoy}` reads.
const initialMetadata = `initial_metadata: [ { key: x-ratelimitd-client, value: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%" } ]`

const (
	daemonAddress   = "socket_address: { address: 127.0.0.1, port_value: 9001 }"
	upstreamAddress = "socket_address: { address: 127.0.0.1, port_value: 10001 }"
	edgeAddress     = "socket_address: { address: 127.0.0.1, port_value: 10000 }"
)

func address(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return fmt.Sprintf("pipe: { path: %q }", addr)
	}
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("socket_address: { address: %s, port_value: %s }", host, port)
}

// bootstrap is deploy/envoy.yaml on free ports, asking the daemon, in front of the upstream, with a deadline that a loaded
// machine can keep.
func bootstrap(t *testing.T, daemon, upstream string, edits ...edit) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	edits = append([]edit{
		{edgeAddress, address("127.0.0.1:0")},
		{"port_value: 9901", "port_value: 0"},
		{daemonAddress, address(daemon)},
		{upstreamAddress, address(upstream)},
		{"timeout: 0.1s ", "timeout: 5s "},
		{"max_interval: 0.1s", "max_interval: 5s"},
		{"failure_mode_allow: true\n", "failure_mode_allow: false\n"}, // what Envoy itself lets pass would hide a fault
	}, edits...)
	for _, e := range edits {
		if n := strings.Count(out, e.old); n != 1 {
			t.Fatalf("deploy/envoy.yaml holds %q %d times, not once", e.old, n)
		}
		out = strings.Replace(out, e.old, e.new, 1)
	}
	return out
}

// sent makes Envoy send the request headers that the rules of the daemon read, as `ratelimitd check` prints them.
func sent(t *testing.T, d *harness.Daemon) edit {
	t.Helper()
	out, err := exec.Command(ratelimitd, "check", d.ConfigFile).Output()
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	_, list, found := strings.Cut(string(out), "allowed_headers:\n  patterns:\n")
	names := headerNames(list)
	if !found || len(names) == 0 {
		t.Fatalf("check does not print allowed_headers:\n%s", out)
	}
	return edit{deployedHeaders(t), "allowed_headers: { patterns: [ { exact: " + strings.Join(names, " }, { exact: ") + " } ] }"}
}

// deployedHeaders is the list of the headers that deploy/envoy.yaml sends, as it stands there.
func deployedHeaders(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ *(allowed_headers: .*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("deploy/envoy.yaml has no allowed_headers")
	}
	return string(line[1])
}

// headerNames are the names in a list of patterns.
func headerNames(patterns string) []string {
	var names []string
	for _, found := range regexp.MustCompile(`exact: ([a-z0-9-]+)`).FindAllStringSubmatch(patterns, -1) {
		names = append(names, found[1])
	}
	return names
}

// upstream is a server that answers 200 and tells what it was sent.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	last http.Header
	n    int
}

func newUpstream(t *testing.T) *upstream {
	u := new(upstream)
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.last, u.n = r.Header.Clone(), u.n+1
		u.mu.Unlock()
		w.Header().Set("X-RateLimit-Limit", "99") // what an upstream says of its own must not be seen beside ours
		fmt.Fprintln(w, "ok")
	}))
	u.Config.Protocols = new(http.Protocols)
	u.Config.Protocols.SetHTTP1(true)
	u.Config.Protocols.SetUnencryptedHTTP2(true)
	u.Start()
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) addr() string { return u.Listener.Addr().String() }

func (u *upstream) seen() (http.Header, int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last, u.n
}

// edge is a whole installation: a client's way in, through Envoy and ratelimitd, to the upstream.
type edge struct {
	t        *testing.T
	envoy    *harness.EnvoyProxy
	daemon   *harness.Daemon
	upstream *upstream
}

// newEdge starts one on those rules.
func newEdge(t *testing.T, config string, edits ...edit) *edge {
	t.Helper()
	return newEdgeAt(t, "", config, edits...)
}

func newEdgeAt(t *testing.T, daemonAddr, config string, edits ...edit) *edge {
	t.Helper()
	harness.Binary(t, "envoy") // skip before anything is started
	u := newUpstream(t)
	d := harness.Serve(t, ratelimitd, daemonAddr, config)
	if !slices.ContainsFunc(edits, func(e edit) bool { return e.old == deployedHeaders(t) }) {
		edits = append(edits, sent(t, d))
	}
	return &edge{t: t, envoy: harness.Envoy(t, bootstrap(t, d.Addr, u.addr(), edits...)), daemon: d, upstream: u}
}

// client is an HTTP client at that loopback address, which is the address that Envoy sees.
func client(ip string, http2 bool) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 5 * time.Second}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		Protocols: protocols,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		},
	}}
}

// answer is what a client got.
type answer struct {
	code   int
	header http.Header
	body   string
	proto  int
}

func (e *edge) do(c *http.Client, req *http.Request) answer {
	e.t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		e.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return answer{resp.StatusCode, resp.Header, string(body), resp.ProtoMajor}
}

// request makes a request to Envoy; headers are name, value, name, value …
func (e *edge) request(method, path string, headers ...string) *http.Request {
	e.t.Helper()
	req, err := http.NewRequest(method, "http://"+e.envoy.Addr+path, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	return req
}

// get asks for a path from the address 127.0.0.2.
func (e *edge) get(path string, headers ...string) answer {
	e.t.Helper()
	return e.do(client("127.0.0.2", false), e.request(http.MethodGet, path, headers...))
}

// accessLog waits for Envoy's log line of that path and returns its `ratelimit` object.
func (e *edge) accessLog(path string) map[string]any {
	e.t.Helper()
	var found map[string]any
	if !harness.Eventually(5*time.Second, func() bool {
		for line := range strings.Lines(e.envoy.Output.String()) {
			var entry struct {
				Path      string
				Ratelimit map[string]any
			}
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Path == path {
				found = entry.Ratelimit
			}
		}
		return found != nil
	}) {
		e.t.Fatalf("no access log line for %s in:\n%s", path, e.envoy.Output)
	}
	return found
}
