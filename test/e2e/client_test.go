package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// Envoy's own idea of the client comes as gRPC metadata; a header of that name is the client's own invention.
func TestTheClientIsWhomEnvoyTakesForIt(t *testing.T) {
	e := newEdge(t, "client_ip: {from: envoy}\nrules: [{name: a, key: [client_ip], limit: 1/10m}]",
		edit{"xff_num_trusted_hops: 0", "xff_num_trusted_hops: 1"}, edit{"# " + initialMetadata, initialMetadata})
	for _, row := range []struct {
		forwarded string
		code      int
	}{
		{"203.0.113.9", 200},
		{"203.0.113.9", 429},
		{"6.6.6.6, 203.0.113.9", 429},
		{"203.0.113.10", 200},
	} {
		if a := e.get("/", "X-Forwarded-For", row.forwarded, "X-Ratelimitd-Client", "9.9.9.9"); a.code != row.code {
			t.Errorf("%s: %d, want %d", row.forwarded, a.code, row.code)
		}
	}
}

// D39: what a client writes into X-Forwarded-For in front of the trusted proxies counts for nothing.
func TestAForgedForwardedForMakesNoFreshBucket(t *testing.T) {
	e := newEdge(t, `
client_ip: {from: headers, trusted_proxies: [127.0.0.2]}
rules: [{name: a, key: [client_ip], limit: 5/10m}]`)
	allowed := 0
	for i := range 20 {
		if e.get("/", "X-Forwarded-For", fmt.Sprintf("1.1.1.%d, 203.0.113.9", i)).code == 200 {
			allowed++
		}
	}
	if allowed != 5 {
		t.Errorf("%d of 20 allowed, want 5", allowed)
	}
}

// Over HTTP/2 and HTTP/1 a path has one bucket, whatever its spelling. D56
func TestNoSpellingOfAPathDodgesItsRule(t *testing.T) {
	e := newEdge(t, "rules: [{name: login, match: {paths: [/login]}, key: [client_ip], limit: 3/10m}]")
	clients := []*http.Client{client("127.0.0.2", false), client("127.0.0.2", true)}
	codes := ""
	for i, path := range []string{"/login", "//login", "/x/../login", "/%6Cogin", "/login;v=1", "/login/", "/login?x=1"} {
		codes += fmt.Sprint(e.do(clients[i%2], e.request("GET", path)).code, " ")
	}
	if codes != "200 200 200 429 429 429 429 " {
		t.Error(codes)
	}
}

// An Envoy that asks about connections sends no HTTP request: rules without HTTP conditions apply.
func TestConnectionsAreLimitedToo(t *testing.T) {
	harness.Binary(t, "envoy")
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = echo.Close() })
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			if line, err := bufio.NewReader(c).ReadString('\n'); err == nil {
				fmt.Fprint(c, line)
			}
			_ = c.Close()
		}
	}()
	d := harness.Serve(t, ratelimitd, "", `
rules:
- {name: http-only, match: {paths: [/**]}, key: [client_ip], limit: 0/1m}
- {name: connections, key: [client_ip], limit: 2/10m}`)
	envoy := harness.Envoy(t, fmt.Sprintf(`
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }
static_resources:
  listeners:
  - name: tcp
    address: { %s }
    filter_chains:
    - filters:
      - name: envoy.filters.network.ext_authz
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.ext_authz.v3.ExtAuthz
          stat_prefix: ratelimitd
          transport_api_version: V3
          grpc_service: { timeout: 5s, envoy_grpc: { cluster_name: ratelimitd } }
      - name: envoy.filters.network.tcp_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: tcp
          cluster: echo
  clusters:
  - name: ratelimitd
    load_assignment: { cluster_name: ratelimitd, endpoints: [ { lb_endpoints: [ { endpoint: { address: { %s } } } ] } ] }
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http2_protocol_options: {} }
  - name: echo
    load_assignment: { cluster_name: echo, endpoints: [ { lb_endpoints: [ { endpoint: { address: { %s } } } ] } ] }
`, address("127.0.0.1:0"), address(d.Addr), address(echo.Addr().String())))
	for i, want := range []bool{true, true, false} {
		c, err := net.Dial("tcp", envoy.Addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprintln(c, "hi") // Envoy asks when the first byte comes
		line, _ := bufio.NewReader(c).ReadString('\n')
		if got := line == "hi\n"; got != want {
			t.Errorf("connection %d: answered %v, want %v", i+1, got, want)
		}
		_ = c.Close()
	}
}

// A request may state its cost, and a plan, its own limit: through a real Envoy.
func TestCostsAndOverridesComeFromTheRequest(t *testing.T) {
	e := newEdge(t, `
rules:
- name: units
  match: {paths: [/**]}
  key: [query.user]
  limit: 10/10m
  cost: {from: header.x-cost, max: 5}
  overrides: [{match: {headers: {x-plan: pro}}, limit: 20/10m}]`)
	for _, row := range []struct {
		path      string
		headers   []string
		code      int
		remaining string
	}{
		{"/a?user=u", []string{"X-Cost", "3"}, 200, "7"},
		{"/b?x=1&user=%75", []string{"X-Cost", "-4"}, 200, "6"},
		{"/a?user=u", []string{"X-Cost", "5000"}, 200, "1"},
		{"/a?user=u", []string{"X-Cost", "2"}, 429, "0"},
		{"/a?user=u", []string{"X-Cost", "2", "X-Plan", "pro"}, 200, "9"},
		{"/a?user=u", []string{"X-Cost", "2", "X-Plan", "pro", "X-Plan", "free"}, 429, "0"},
		{"/a?user=v", nil, 200, "9"},
	} {
		a := e.get(row.path, row.headers...)
		if got := a.header.Get("X-RateLimit-Remaining"); a.code != row.code || got != row.remaining {
			t.Errorf("%s %v: %d, %s left, want %d, %s", row.path, row.headers, a.code, got, row.code, row.remaining)
		}
	}
}
