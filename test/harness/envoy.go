package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// EnvoyProxy is an Envoy that was started.
type EnvoyProxy struct {
	Addr  string // of its first listener: 127.0.0.1:port, or the path of a Unix socket
	Admin string // base URL of its admin interface
	// Output is what Envoy writes to its standard output: the access log of the usual bootstrap.
	Output *Output
	PID    int
	Stop   func() // kills it, and waits until it is gone
}

// Envoy starts an Envoy with that bootstrap, whose listeners may have port 0, and waits until it is live. It is killed
// when the test ends.
func Envoy(t testing.TB, bootstrap string) *EnvoyProxy {
	t.Helper()
	e, err := StartEnvoy(t.TempDir(), bootstrap, Binary(t, "envoy"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	return e
}

// startTime bounds the start of an Envoy: one that is run by a tool that watches it takes its time.
const startTime = time.Minute

// StartEnvoy starts an Envoy with that bootstrap, whose listeners may have port 0, and waits until it is live. command is its
// binary, perhaps after a program that runs it. Its files are in dir, which may hold those of one Envoy alone. Stop it.
func StartEnvoy(dir, bootstrap string, command ...string) (*EnvoyProxy, error) {
	config, admin := filepath.Join(dir, "envoy.yaml"), filepath.Join(dir, "admin")
	if err := os.WriteFile(config, []byte(bootstrap), 0o600); err != nil {
		return nil, fmt.Errorf("start envoy: %w", err)
	}
	// Hot restart would let Envoy end by a signal when the thread that started it ends.
	args := append(command[1:len(command):len(command)], "-c", config, "--disable-hot-restart", "--concurrency", "1", "-l", "warning",
		"--file-flush-interval-msec", "20", "--admin-address-path", admin)
	cmd := exec.Command(command[0], args...)
	e, errors := &EnvoyProxy{Output: new(Output)}, new(Output)
	cmd.Stdout, cmd.Stderr = e.Output, errors
	ended, err := start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start envoy: %w", err)
	}
	e.PID = cmd.Process.Pid
	e.Stop = func() {
		_ = cmd.Process.Kill() // an error says that it has ended
		<-ended
	}
	if !Eventually(startTime, func() bool { return e.live(admin) }) {
		e.Stop()
		return nil, fmt.Errorf("envoy is not live after %s:\n%s", startTime, errors)
	}
	return e, nil
}

// live reports whether Envoy is live, and learns its addresses.
func (e *EnvoyProxy) live(adminFile string) bool {
	addr, err := os.ReadFile(adminFile)
	if err != nil || len(addr) == 0 {
		return false
	}
	e.Admin = "http://" + strings.TrimSpace(string(addr))
	if _, err := e.get("/ready"); err != nil {
		return false
	}
	body, err := e.get("/listeners?format=json")
	if err != nil {
		return false
	}
	var listeners struct {
		Statuses []struct {
			Address struct {
				Socket struct {
					Port int `json:"port_value"`
				} `json:"socket_address"`
				Pipe struct{ Path string }
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if json.Unmarshal(body, &listeners) != nil || len(listeners.Statuses) == 0 {
		return false
	}
	if at := listeners.Statuses[0].Address; at.Pipe.Path != "" {
		e.Addr = at.Pipe.Path
	} else {
		e.Addr = fmt.Sprintf("127.0.0.1:%d", at.Socket.Port)
	}
	return true
}

func (e *EnvoyProxy) get(path string) ([]byte, error) {
	resp, err := http.Get(e.Admin + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// Counter returns the value of one of Envoy's counters or gauges; 0 if there is none of that name.
func (e *EnvoyProxy) Counter(t testing.TB, name string) int {
	t.Helper()
	body, err := e.get("/stats?usedonly&filter=^" + name + "$")
	if err != nil {
		t.Fatalf("read envoy's statistics: %v", err)
	}
	var value int
	for line := range strings.Lines(string(body)) {
		if n, rest, ok := strings.Cut(line, ": "); ok && n == name {
			_, _ = fmt.Sscan(rest, &value)
		}
	}
	return value
}

// Output gathers what a program writes; it is safe for use by several goroutines.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Eventually asks until the answer is yes, for so long; it reports whether it ever was.
func Eventually(within time.Duration, yes func() bool) bool {
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		if yes() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
