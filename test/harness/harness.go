// Package harness starts the programs that tests run against, each for one test, and stops them when the test ends.
package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Binary returns the path of the program of that name, as Find does. Without it the test is skipped, or fails where the
// environment variable CI is set.
func Binary(t testing.TB, name string) string {
	t.Helper()
	path, err := Find(name)
	if err != nil {
		skip := t.Skip
		if os.Getenv("CI") != "" {
			skip = t.Fatal
		}
		skip(err)
	}
	return path
}

// Find returns the path of the program of that name: what the environment variable RATELIMITD_NAME says
// (RATELIMITD_ENVOY for envoy, RATELIMITD_REDIS_SERVER for redis-server), else .tools/bin of the repository, else what
// PATH finds.
func Find(name string) (string, error) {
	variable := "RATELIMITD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	if root, ok := repository(); ok {
		path := filepath.Join(root, ".tools", "bin", name)
		if _, err := exec.LookPath(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("needs %s: install it, or set %s to its path", name, variable)
	}
	return path, nil
}

// FreePort returns a TCP port of the loopback address on which nothing listens now.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// repository returns the folder of the go.mod above the test's working folder.
func repository() (root string, ok bool) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return "", false
}

// start starts cmd so that it does not outlive the test process, however that ends, where the system can do so. The
// channel is closed when the program has ended.
func start(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	done := make(chan struct{})
	started := make(chan error)
	go func() {
		// The signal is sent when the thread that started the program ends, so that thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		dieWithParent(cmd)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(done)
	}()
	return done, <-started
}
