package harness

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// SentinelSet is a master, its replica and three sentinels of one test.
type SentinelSet struct {
	URL             string // names every sentinel
	Master, Replica *RedisServer
	Sentinels       []*RedisServer

	t testing.TB
}

// Sentinel starts them on the loopback address and waits until all know each other. A server counts as down after half a
// second.
func Sentinel(t testing.TB) *SentinelSet {
	t.Helper()
	s := &SentinelSet{t: t, Master: Redis(t, "--repl-diskless-sync-delay", "0")}
	host, port, _ := net.SplitHostPort(s.Master.Addr)
	s.Replica = Redis(t, "--replicaof", host, port)
	for range 3 {
		sentinel := sentinelOf(t, host, port)
		s.Sentinels = append(s.Sentinels, sentinel)
		s.URL += "&addr=" + sentinel.Addr
	}
	s.URL = "redis://" + s.Sentinels[0].Addr + "?master_name=main" + s.URL
	s.AwaitReplica()
	return s
}

func sentinelOf(t testing.TB, host, port string) *RedisServer {
	t.Helper()
	s := newRedis(t, FreePort(t))
	own := filepath.Join(s.dir, "sentinel.conf")
	_, ownPort, _ := net.SplitHostPort(s.Addr)
	lines := []string{
		"bind 127.0.0.1", "port " + ownPort, "dir " + s.dir,
		"sentinel monitor main " + host + " " + port + " 2",
		"sentinel down-after-milliseconds main 500",
		"sentinel failover-timeout main 3000", "",
	}
	if err := os.WriteFile(own, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatalf("start redis-sentinel: %v", err)
	}
	s.args = []string{own, "--sentinel"}
	s.Restart()
	return s
}

// watches reports whether a sentinel knows the two others and the replica.
func (s *RedisServer) watches() bool {
	c := redis.NewSentinelClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer c.Close()
	master := c.Master(context.Background(), "main").Val()
	replicas, err := c.Replicas(context.Background(), "main").Result()
	return err == nil && master["num-other-sentinels"] == "2" && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok" &&
		replicas[0]["flags"] == "slave"
}

// Failover makes the replica the master, by command.
func (s *SentinelSet) Failover() {
	s.t.Helper()
	if err := s.Sentinels[0].Client().Do(context.Background(), "sentinel", "failover", "main").Err(); err != nil {
		s.t.Fatalf("sentinel failover: %v", err)
	}
}

// MasterAddr is what the sentinels call the master, "" while they do not agree.
func (s *SentinelSet) MasterAddr() (addr string) {
	for i, n := range s.Sentinels {
		c := redis.NewSentinelClient(&redis.Options{Addr: n.Addr, MaxRetries: -1})
		master := c.Master(context.Background(), "main").Val()
		_ = c.Close()
		if now := net.JoinHostPort(master["ip"], master["port"]); i == 0 || now == addr {
			addr = now
		} else {
			return ""
		}
	}
	return addr
}

// AwaitReplica waits until the sentinels know each other and one replica of the master, which is linked to it.
func (s *SentinelSet) AwaitReplica() {
	s.t.Helper()
	if !Eventually(20*time.Second, func() bool {
		return !slices.ContainsFunc(s.Sentinels, func(n *RedisServer) bool { return !n.watches() })
	}) {
		s.t.Fatal("after 20 s the sentinels do not know each other, or the master has no replica")
	}
}
