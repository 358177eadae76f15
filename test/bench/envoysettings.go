package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// setting is a change of the plain settings, or the deployed ones.
type setting struct {
	name   string
	change string // as bootstrap.change takes it; "" changes nothing
	unix   bool
	whole  bool // of the deployed settings
}

// settings are compared with the first.
var settings = []setting{
	{name: "plain settings"},
	{name: "unix socket", unix: true},
	{name: "allowed_headers: content-type", change: "filter: {allowed_headers: {patterns: [{exact: content-type}]}}"},
	{name: "encode_raw_headers", change: "filter: {encode_raw_headers: true}"},
	{name: "disallowed_headers: cookie", change: "filter: {disallowed_headers: {patterns: [{exact: cookie}]}}"},
	{name: "skip_envoy_headers", change: "filter: {grpc_service: {envoy_grpc: {skip_envoy_headers: true}}}"},
	{name: "no timeout", change: "filter: {grpc_service: {timeout: 0s}}"},
	{name: "enable_dynamic_metadata_ingestion: false", change: "filter: {enable_dynamic_metadata_ingestion: false}"},
	{name: "emit_client_span: false", change: "filter: {emit_client_span: false}"},
	{name: "validate_mutations, decoder_header_mutation_rules", change: "filter: {validate_mutations: true, decoder_header_mutation_rules: {disallow_all: true}}"},
	{name: "filter_enabled", change: "filter: {filter_enabled: {runtime_key: ratelimitd.enabled, default_value: {numerator: 100}}}"},
	{name: "charge_cluster_response_stats: false", change: "filter: {charge_cluster_response_stats: false}"},
	{name: "stat_prefix", change: "filter: {stat_prefix: ratelimitd}"},
	{name: "initial_metadata of the client's address", change: `filter: {grpc_service: {initial_metadata: [{key: x-ratelimitd-client, value: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"}]}}`},
	{name: "retry_policy of the filter", change: "filter: {grpc_service: {" + safeRetries + "}}"},
	{name: "the same retry_policy of the cluster", change: protocolOptions("{" + safeRetries + "}")},
	{name: "windows of http2", change: http2Options("initial_stream_window_size: 65536, initial_connection_window_size: 1048576")},
	{name: "circuit_breakers", change: "cluster: {circuit_breakers: {thresholds: [{max_pending_requests: 16384, max_requests: 16384, max_retries: 1024}]}}"},
	{name: "health_checks", change: "cluster: {health_checks: [{timeout: 5s, interval: 1s, unhealthy_threshold: 2, healthy_threshold: 1, grpc_health_check: {}}]}"},
	{name: "no Huffman coding", change: http2Options("enable_huffman_encoding: false")},
	{name: "no table of HPACK", change: http2Options("hpack_table_size: 0")},
	{name: "oghttp2", change: http2Options("use_oghttp2_codec: true")},
	{name: "google_grpc", change: "filter: {grpc_service: {envoy_grpc: null, google_grpc: {stat_prefix: ratelimitd}}}"},
	{name: "deploy/envoy.yaml, TCP", whole: true},
	{name: "deploy/envoy.yaml, unix socket", unix: true, whole: true},
	{name: "the same, allowed_headers: content-type alone", unix: true, whole: true, change: "filter: {allowed_headers: {patterns: [{exact: content-type}]}}"},
	{name: "plain settings, once more"},
}

const safeRetries = "retry_policy: {retry_on: 'connect-failure,refused-stream,reset-before-request', num_retries: 3, " +
	"retry_back_off: {base_interval: 0.005s, max_interval: 5s}}"

func protocolOptions(change string) string {
	return "cluster: {typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: " + change + "}}"
}

func http2Options(change string) string {
	return protocolOptions("{explicit_http_config: {http2_protocol_options: {" + change + "}}}")
}

// Each setting is counted over this many requests of each of some connections, after some that are not counted.
const (
	countedConnections = 4
	countedRequests    = 150
	warmingRequests    = 30
)

// benchSettings counts the instructions of Envoy for each request, setting by setting, and prints the table of
// docs/performance.md. All of them are in one Envoy, each behind a listener of its own, which Valgrind runs: the counts hold
// to about one in a hundred on the busiest machine, and leave out what the kernel does.
func benchSettings(ctx context.Context, daemon string) error {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return fmt.Errorf("needs valgrind to count instructions: %w", err)
	}
	v, err := newEnvoyLab(ctx, daemon, extent{})
	if err != nil {
		return err
	}
	defer v.stop()
	text, ports, err := v.allSettings()
	if err != nil {
		return err
	}
	e, err := harness.StartEnvoy(v.dir, text, valgrind, "--tool=callgrind", "--instr-atstart=no",
		"--callgrind-out-file="+filepath.Join(v.dir, "counted"), v.envoy)
	if err != nil {
		return err
	}
	v.stops = append(v.stops, e.Stop)
	counts := make([]float64, len(ports))
	for i, port := range ports {
		fmt.Fprintf(os.Stderr, "bench: %d of %d\n", i+1, len(ports))
		if counts[i], err = v.count(e.PID, fmt.Sprintf("127.0.0.1:%d", port), i > 0); err != nil {
			return err
		}
	}
	printSettings(counts)
	return nil
}

// printSettings prints how many instructions each setting adds. The first count is that without a filter.
func printSettings(counts []float64) {
	lines := [][]string{{"", "added, thousands of instructions", "against the plain settings"}}
	none, plain := counts[0], counts[1]
	for i, s := range settings {
		n := counts[i+1]
		lines = append(lines, []string{s.name, fmt.Sprintf("%.0f", (n-none)/1000), fmt.Sprintf("%+.1f %%", 100*(n-plain)/(plain-none))})
	}
	printMarkdown(os.Stdout, lines)
	fmt.Printf("\nWithout a filter a request takes %.0f thousand instructions.\n", none/1000)
}

// allSettings returns a bootstrap with a listener and a cluster for each of the settings, after a listener without a filter;
// and their ports.
func (v *envoyLab) allSettings() (text string, ports []int, err error) {
	whole, err := deployed(v.upstream, v.memory.tcp)
	if err != nil {
		return "", nil, err
	}
	whole.replaceFilter(nil)
	static := at(whole.whole, "static_resources")
	static["clusters"] = []any{named(static, "clusters", upstreamName)}
	listen := func(b *bootstrap) error {
		port, err := freePort()
		if err != nil {
			return err
		}
		listener := at(b.whole, "static_resources", "listeners", 0)
		at(listener, "address", "socket_address")["port_value"] = port
		listener["name"] = strconv.Itoa(port)
		ports = append(ports, port)
		static["listeners"] = append(static["listeners"].([]any), listener)
		return nil
	}
	if err := listen(whole); err != nil {
		return "", nil, err
	}
	static["listeners"] = static["listeners"].([]any)[1:] // it stands twice now
	for i, s := range settings {
		b, err := v.with(s, fmt.Sprintf("%s-%d", daemonName, i))
		if err == nil {
			err = listen(b)
		}
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", s.name, err)
		}
		static["clusters"] = append(static["clusters"].([]any), b.cluster)
	}
	text, err = whole.text()
	return text, ports, err
}

// with returns a bootstrap with that setting, whose cluster bears that name.
func (v *envoyLab) with(s setting, cluster string) (*bootstrap, error) {
	address := v.memory.tcp
	if s.unix {
		address = v.memory.unix
	}
	b, err := deployed(v.upstream, address)
	if err != nil {
		return nil, err
	}
	if !s.whole {
		if err := b.makePlain(); err != nil {
			return nil, err
		}
	}
	if err := b.change(s.change); err != nil {
		return nil, err
	}
	b.cluster["name"], at(b.cluster, "load_assignment")["cluster_name"] = cluster, cluster
	if own := at(b.filter, "grpc_service", "google_grpc"); own != nil {
		own["target_uri"] = address
	} else {
		at(b.filter, "grpc_service", "envoy_grpc")["cluster_name"] = cluster
	}
	return b, nil
}

// count returns the instructions that Envoy runs for each request to that address.
func (v *envoyLab) count(pid int, addr string, limited bool) (float64, error) {
	opened, err := v.openBrowsers(addr, limited)
	if err != nil {
		return 0, err
	}
	load := &subject{callers: countedConnections, newAsk: func(caller int) ask { return opened[caller].ask }}
	dump := filepath.Join(v.dir, "counted")
	for _, step := range []func() error{
		func() error { return load.repeat(warmingRequests) },
		func() error { return callgrind(pid, "-i", "on") },
		func() error { return load.repeat(warmingRequests) },
		func() error { return callgrind(pid, "-z") },
		func() error { return load.repeat(countedRequests) },
		func() error { return callgrind(pid, "-d") },
		func() error { return callgrind(pid, "-i", "off") },
	} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	total, err := countedIn(dump)
	return total / (countedConnections * countedRequests), err
}

// callgrind tells Valgrind what to do with the Envoy that it runs.
func callgrind(pid int, args ...string) error {
	out, err := exec.Command("callgrind_control", append(args, strconv.Itoa(pid))...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("callgrind_control %s: %w\n%s", args, err, out)
	}
	return nil
}

// countedIn adds up and removes the dumps of that name, whose lines `totals: N` say how many instructions were counted.
func countedIn(name string) (float64, error) {
	files, err := filepath.Glob(name + ".*")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), "\ntotals: ")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += n
		_ = os.Remove(file)
	}
	return sum, nil
}

// freePort returns a TCP port of the loopback address on which nothing listens now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
