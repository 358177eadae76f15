package harness

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Daemon is a ratelimitd of one test.
type Daemon struct {
	Addr       string // where Envoy asks: 127.0.0.1:port, or the path of a Unix socket
	Admin      string // base URL of its admin interface
	ConfigFile string
	Log        *Output

	t     testing.TB
	cmd   *exec.Cmd
	ended <-chan struct{}
}

// Build builds the program of that package of this module, with the race detector, and returns the path of the binary.
func Build(dir, pkg string) (binary string, err error) {
	binary = filepath.Join(dir, filepath.Base(pkg))
	out, err := exec.Command("go", "build", "-race", "-o", binary, pkg).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %v\n%s", pkg, err, out)
	}
	return binary, nil
}

// Main builds ratelimitd, lets a package's tests run with the path of the binary in *binary, and returns their exit code.
func Main(m *testing.M, binary *string) int {
	dir, err := os.MkdirTemp("", "ratelimitd")
	if err == nil {
		defer os.RemoveAll(dir)
		*binary, err = Build(dir, "github.com/ratelimitd/ratelimitd/cmd/ratelimitd")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Serve starts the ratelimitd binary on those rules, which hold neither `listen` nor `admin`, and waits until it is ready.
// addr is where it listens for Envoy; "" is a free port of the loopback address. It is killed when the test ends.
func Serve(t testing.TB, binary, addr, config string, args ...string) *Daemon {
	t.Helper()
	d := &Daemon{Addr: addr, ConfigFile: filepath.Join(t.TempDir(), "config.yaml"), Log: new(Output), t: t}
	if addr == "" {
		d.Addr = fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	}
	d.Admin = fmt.Sprintf("http://127.0.0.1:%d", FreePort(t))
	d.Configure(d.head() + config)
	d.cmd = exec.Command(binary, append([]string{"serve", "--config", d.ConfigFile, "--drain", "0s"}, args...)...)
	d.cmd.Stdout, d.cmd.Stderr = d.Log, d.Log
	ended, err := start(d.cmd)
	if err != nil {
		t.Fatalf("start ratelimitd: %v", err)
	}
	d.ended = ended
	t.Cleanup(d.kill)
	if !Eventually(15*time.Second, d.ready) {
		t.Fatalf("ratelimitd is not ready after 15 s:\n%s", d.Log)
	}
	return d
}

// Configure replaces the daemon's configuration file, `listen` and `admin` included.
func (d *Daemon) Configure(text string) {
	d.t.Helper()
	if err := os.WriteFile(d.ConfigFile, []byte(text), 0o600); err != nil {
		d.t.Fatalf("write the configuration: %v", err)
	}
}

// Reload replaces the configuration but for `listen` and `admin`, and puts it in force.
func (d *Daemon) Reload(config string) {
	d.t.Helper()
	d.Configure(d.head() + config)
	resp, err := http.Post(d.Admin+"/-/reload", "", nil)
	if err != nil {
		d.t.Fatalf("reload: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		d.t.Fatalf("reload: %s\n%s", resp.Status, d.Log)
	}
}

// head is the beginning of the daemon's configuration: where it listens.
func (d *Daemon) head() string {
	listen := d.Addr
	if strings.HasPrefix(listen, "/") {
		listen = "unix://" + listen
	}
	return fmt.Sprintf("listen: %s\nadmin: %s\n", listen, strings.TrimPrefix(d.Admin, "http://"))
}

// Signal sends the daemon a signal.
func (d *Daemon) Signal(s syscall.Signal) { _ = d.cmd.Process.Signal(s) }

// Wait waits for the daemon to end and returns its exit code.
func (d *Daemon) Wait() int {
	<-d.ended
	return d.cmd.ProcessState.ExitCode()
}

func (d *Daemon) kill() {
	_ = d.cmd.Process.Kill() // an error says that it has ended
	<-d.ended
	if d.t.Failed() {
		d.t.Logf("ratelimitd said:\n%s", d.Log)
	}
}

// ready reports whether the daemon says that it is; one that ended never is.
func (d *Daemon) ready() bool {
	resp, err := http.Get(d.Admin + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
