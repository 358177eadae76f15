package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisServer is a redis-server of one test. It keeps nothing on disk unless its arguments say so.
type RedisServer struct {
	Addr   string // 127.0.0.1:port
	Socket string // path of its Unix socket
	URL    string // redis://127.0.0.1:port/0

	t      testing.TB
	dir    string
	args   []string
	cmd    *exec.Cmd
	output *bytes.Buffer
	ended  <-chan struct{}
}

// Redis starts a redis-server on a free port of the loopback address and on a Unix socket, and waits until it answers. args
// are further arguments of its command line. It is killed when the test ends.
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	return redisAt(t, FreePort(t), args...)
}

func redisAt(t testing.TB, port int, args ...string) *RedisServer {
	t.Helper()
	s := newRedis(t, port)
	s.args = append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--unixsocket", s.Socket, "--dir", s.dir,
		"--save", "", "--appendonly", "no"}, args...)
	s.Restart()
	return s
}

// newRedis returns a server with a folder of its own that is not started.
func newRedis(t testing.TB, port int) *RedisServer {
	t.Helper()
	// Not t.TempDir: the path of a socket is short, and that folder bears the test's name.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &RedisServer{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Socket: filepath.Join(dir, "redis.sock"), t: t, dir: dir}
	s.URL = "redis://" + s.Addr + "/0"
	t.Cleanup(s.Kill)
	return s
}

// Client returns a client of the server's default user. It is closed when the test ends.
func (s *RedisServer) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Stop makes the server stall: it keeps its port and its connections, and answers nothing until Cont.
func (s *RedisServer) Stop() { s.signal(syscall.SIGSTOP) }

// Cont ends a Stop.
func (s *RedisServer) Cont() { s.signal(syscall.SIGCONT) }

// Kill ends the server at once, also a stalled one, and waits until it is gone. A server that has ended stays so.
func (s *RedisServer) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // an error says that it has ended
	<-s.ended
	s.cmd = nil
}

// Restart kills the server if it runs, starts one at the same addresses, with what it kept on disk, and waits until it
// answers.
func (s *RedisServer) Restart() {
	s.t.Helper()
	s.Kill()
	s.output = new(bytes.Buffer)
	cmd := exec.Command(Binary(s.t, "redis-server"), s.args...)
	cmd.Stdout, cmd.Stderr = s.output, s.output
	ended, err := start(cmd)
	if err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	s.cmd, s.ended = cmd, ended
	if err := s.await(10 * time.Second); err != nil {
		s.Kill() // its output is whole then
		s.t.Fatalf("start redis-server: %v\n%s", err, s.output)
	}
}

// await waits until the server answers, be it with an error.
func (s *RedisServer) await(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DisableIdentity: true})
	defer c.Close()
	for {
		err := c.Ping(ctx).Err()
		var reply redis.Error
		if err == nil || errors.As(err, &reply) {
			return nil
		}
		select {
		case <-s.ended:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("no answer within %s: %w", limit, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *RedisServer) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal %v to redis-server: %v", sig, err)
	}
}
