package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// asProgram makes a test binary that is started with it in its environment the program itself.
const asProgram = "RATELIMITD_TEST_RUNS_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// running is a daemon within the test process.
type running struct {
	t      *testing.T
	file   string // its configuration
	listen string // as grpc.NewClient wants it
	admin  string // base URL
	log    *harness.Output
	stop   context.CancelFunc
	code   <-chan int
}

// start runs `serve` on that configuration, which has neither listen nor admin, and waits until it serves. It is stopped
// when the test ends.
func start(t *testing.T, configuration string, args ...string) *running {
	t.Helper()
	r := &running{t: t, file: filepath.Join(t.TempDir(), "config.yaml"), log: new(harness.Output)}
	r.write(configuration)
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	r.stop, r.code = cancel, code
	go func() {
		code <- run(ctx, append([]string{"serve", "--config", r.file, "--drain", "0s"}, args...), io.Discard, r.log)
		close(code)
	}()
	t.Cleanup(func() {
		cancel()
		<-code
		if t.Failed() {
			t.Logf("it said:\n%s", r.log)
		}
	})
	var serving struct {
		Listen []string
		Admin  string
	}
	if !harness.Eventually(10*time.Second, func() bool {
		lines := r.said("serving")
		return len(lines) == 1 && json.Unmarshal([]byte(lines[0]), &serving) == nil
	}) {
		t.Fatalf("it does not serve:\n%s", r.log)
	}
	r.listen, r.admin = serving.Listen[0], "http://"+serving.Admin
	return r
}

const anyPorts = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"

// write puts a configuration in place of the file's, within the same file.
func (r *running) write(configuration string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(anyPorts+configuration), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// said returns the log lines with that message.
func (r *running) said(message string) (lines []string) {
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, `"msg":"`+message+`"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// get returns the status code and the body of a page of the admin server.
func (r *running) get(path string) (int, string) {
	r.t.Helper()
	resp, err := http.Get(r.admin + path)
	return answer(r.t, resp, err)
}

func (r *running) post(path string) (int, string) {
	r.t.Helper()
	resp, err := http.Post(r.admin+path, "", nil)
	return answer(r.t, resp, err)
}

func answer(t *testing.T, resp *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// metric returns the value of a series, as the metrics page writes it; "" if there is none.
func (r *running) metric(series string) string {
	r.t.Helper()
	_, page := r.get("/metrics")
	for line := range strings.Lines(page) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// allowed reports whether one GET of that path may pass.
func (r *running) allowed(path string) bool {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := authv3.NewAuthorizationClient(r.dial()).Check(ctx, get(path))
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.GetStatus().GetCode() == 0
}

func (r *running) dial() *grpc.ClientConn {
	r.t.Helper()
	return dial(r.t, r.listen)
}

func dial(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// get is Envoy's check of a GET by 192.0.2.1.
func get(path string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: "192.0.2.1"},
		}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "GET", Host: "api.example.com", Path: path,
		}},
	}}
}

// eventually fails the test if it does not become true in time.
func eventually(t *testing.T, within time.Duration, what string, yes func() bool) {
	t.Helper()
	if !harness.Eventually(within, yes) {
		t.Fatalf("not within %s: %s", within, what)
	}
}
