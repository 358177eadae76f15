package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// program is the path of a binary that runs the program, race detector included.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ratelimitd")
	self, err := os.Executable()
	must(t, err)
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+asProgram+"=1 exec "+self+" \"$@\"\n"), 0o700))
	return path
}

func TestTheAdminServerShowsWhatItHas(t *testing.T) {
	t.Parallel()
	r := start(t, limits("5/1h"))
	eventually(t, 2*time.Second, "ready", func() bool { code, _ := r.get("/readyz"); return code == http.StatusOK })
	for _, c := range []struct {
		method, path string
		code         int
		holds        string
	}{
		{"GET", "/", 200, "/metrics"},
		{"GET", "/livez", 200, "alive"},
		{"GET", "/readyz", 200, "ready"},
		{"GET", "/metrics", 200, "ratelimitd_build_info{"},
		{"GET", "/config", 200, "limit: 5/1h"},
		{"POST", "/-/reload", 200, "reloaded"},
		{"GET", "/-/reload", 405, ""},
		{"POST", "/config", 405, ""},
		{"GET", "/nothing", 404, ""},
	} {
		req, err := http.NewRequest(c.method, r.admin+c.path, nil)
		must(t, err)
		resp, err := http.DefaultClient.Do(req)
		if code, body := answer(t, resp, err); code != c.code || !strings.Contains(body, c.holds) {
			t.Errorf("%s %s: %d %q, want %d and %q", c.method, c.path, code, body, c.code, c.holds)
		}
	}
	req, err := http.NewRequest("POST", r.admin+"/-/reload", nil)
	must(t, err)
	req.Header.Set("Origin", "https://example.com")
	resp, err := http.DefaultClient.Do(req)
	if code, _ := answer(t, resp, err); code != http.StatusForbidden {
		t.Errorf("a web page elsewhere may reload: %d", code)
	}
}

func TestTheMetricsTellOfTheMemoryStore(t *testing.T) {
	t.Parallel()
	r := start(t, "store: {memory: {max_keys: 1}}\nrules:\n- name: all\n  key: [path]\n  limit: 5/1h\n")
	r.allowed("/a")
	r.allowed("/b")
	for series, want := range map[string]string{
		"ratelimitd_memory_keys":                              "1",
		`ratelimitd_memory_evictions_total{reason="idle"}`:    "1",
		`ratelimitd_memory_evictions_total{reason="refused"}`: "0",
	} {
		if got := r.metric(series); got != want {
			t.Errorf("%s %s, want %s", series, got, want)
		}
	}
}

func TestAdminCanBeOff(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	put(t, file, "listen: 127.0.0.1:0\nadmin: \"\"\n"+limits("5/1h"))
	ctx, cancel := context.WithCancel(context.Background())
	log, code := new(harness.Output), make(chan int)
	go func() { code <- run(ctx, []string{"serve", "--config", file, "--drain", "0s"}, log, log) }()
	eventually(t, 5*time.Second, "it serves", func() bool { return strings.Contains(log.String(), `"admin":""`) })
	cancel()
	if c := <-code; c != 0 {
		t.Errorf("exit code %d, want 0:\n%s", c, log)
	}
}

func TestTheGRPCPortHasHealthAndReflection(t *testing.T) {
	t.Parallel()
	r := start(t, limits("5/1h"))
	conn, ctx := r.dial(), t.Context()
	for _, service := range []string{"", "envoy.service.auth.v3.Authorization"} {
		eventually(t, 2*time.Second, "health of "+service, func() bool { return healthOf(ctx, conn, service) == "SERVING" })
	}
	if got := healthOf(ctx, conn, "nobody"); got != codes.NotFound.String() {
		t.Errorf("health of an unknown service: %s", got)
	}
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	must(t, err)
	must(t, stream.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}))
	answer, err := stream.Recv()
	must(t, err)
	must(t, stream.CloseSend())
	if !strings.Contains(answer.String(), "envoy.service.auth.v3.Authorization") {
		t.Errorf("reflection lists %s", answer)
	}
}

func healthOf(ctx context.Context, conn grpc.ClientConnInterface, service string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resp, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		return status.Code(err).String()
	}
	return resp.Status.String()
}

// D101, D102
func TestReadinessWaitsForRedisOnceAndNeverAgain(t *testing.T) {
	t.Parallel()
	redis := harness.Redis(t)
	redis.Kill()
	r := start(t, limits("5/1h"), "--redis-url", redis.URL)
	conn, ctx := r.dial(), t.Context()
	if code, text := r.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "redis: redis 127.0.0.1") || !strings.Contains(text, "refused") {
		t.Errorf("/readyz before Redis: %d %q", code, text)
	}
	if lines := r.said("serving"); len(lines) != 1 || !strings.Contains(lines[0], `"store":"redis","mode":"single"`) {
		t.Errorf("the log: %q", lines)
	}
	if code, _ := r.get("/livez"); code != http.StatusOK {
		t.Errorf("/livez before Redis: %d", code)
	}
	if got := healthOf(ctx, conn, ""); got != "NOT_SERVING" {
		t.Errorf("health before Redis: %s", got)
	}
	if !r.allowed("/") {
		t.Error("the failure policy does not decide before Redis")
	}

	redis.Restart()
	ready := func() bool { code, _ := r.get("/readyz"); return code == http.StatusOK }
	eventually(t, time.Second, "ready after Redis is there", ready)
	if got := healthOf(ctx, conn, ""); got != "SERVING" {
		t.Errorf("health with Redis: %s", got)
	}

	redis.Kill()
	for range 5 {
		r.allowed("/")
		if code, _ := r.get("/livez"); code != http.StatusOK || !ready() || healthOf(ctx, conn, "") != "SERVING" {
			t.Fatal("an outage of Redis made the process look sick")
		}
	}
}

// D103
func TestAStopIsAnnouncedAndServedUntilTheDrainIsOver(t *testing.T) {
	t.Parallel()
	d := harness.Serve(t, program(t), "", limits("1000000/1h"), "--drain", "1s")
	conn, ctx := dial(t, d.Addr), t.Context()
	d.Signal(syscall.SIGTERM)
	eventually(t, 500*time.Millisecond, "not ready", func() bool {
		resp, err := http.Get(d.Admin + "/readyz")
		code, body := answer(t, resp, err)
		return code == http.StatusServiceUnavailable && strings.Contains(body, "stopping")
	})
	if got := healthOf(ctx, conn, ""); got != "NOT_SERVING" {
		t.Errorf("health after SIGTERM: %s", got)
	}
	if _, err := authv3.NewAuthorizationClient(conn).Check(ctx, get("/")); err != nil {
		t.Errorf("a check during the drain: %v", err)
	}
	if code := d.Wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestASecondSIGINTStopsAtOnceAndASecondSIGTERMChangesNothing(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		drain  string
		second syscall.Signal
		code   int
	}{{"1h", syscall.SIGINT, 1}, {"500ms", syscall.SIGTERM, 0}} {
		d := harness.Serve(t, program(t), "", limits("5/1h"), "--drain", row.drain)
		d.Signal(syscall.SIGTERM)
		eventually(t, 5*time.Second, "the stop begins", func() bool { return strings.Contains(d.Log.String(), "stopping") })
		d.Signal(row.second)
		if code := d.Wait(); code != row.code {
			t.Errorf("drain %s, then %v: exit code %d, want %d", row.drain, row.second, code, row.code)
		}
	}
}

// A client that watches the health, as some load balancers do, or that browses the services holds up no stop.
func TestOpenStreamsDoNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	d := harness.Serve(t, program(t), "", limits("5/1h"))
	conn := dial(t, d.Addr)
	watch, err := healthv1.NewHealthClient(conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	services, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err == nil {
		err = services.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	}
	if err == nil {
		_, err = services.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	d.Signal(syscall.SIGTERM)
	if code := d.Wait(); code != 0 || time.Since(start) > stopWithin/2 {
		t.Errorf("exit code %d after %v", code, time.Since(start))
	}
}

// D103
func TestASuccessorOnTheSameSocketLosesNoCheck(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(socketFolder(t), "r.sock")
	binary := program(t)
	old := harness.Serve(t, binary, socket, limits("1000000/1h"), "--drain", "1s")
	var sent, failed atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 4 {
		client := authv3.NewAuthorizationClient(dial(t, "unix://"+socket))
		clients.Go(func() {
			for tick := time.NewTicker(4 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				sent.Add(1)
				if _, err := client.Check(t.Context(), get("/")); err != nil {
					failed.Add(1)
					t.Log(err)
				}
			}
		})
	}
	eventually(t, 5*time.Second, "checks under way", func() bool { return sent.Load() > 100 })
	harness.Serve(t, binary, socket, limits("1000000/1h"))
	old.Signal(syscall.SIGTERM)
	if code := old.Wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	before := sent.Load()
	eventually(t, 5*time.Second, "checks of the successor", func() bool { return sent.Load() > before+200 })
	stop()
	clients.Wait()
	if failed.Load() != 0 {
		t.Errorf("%d of %d checks failed", failed.Load(), sent.Load())
	}
}
