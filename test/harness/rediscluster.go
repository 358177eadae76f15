package harness

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// ClusterNodes is a Redis Cluster of one test: three masters, each with a replica.
type ClusterNodes struct {
	URL   string // names every node
	Nodes []*RedisServer

	t testing.TB
}

// RedisCluster starts a cluster on the loopback address and waits until all slots are served and each master has its
// replica. A node counts as failed after half a second, and the others serve their slots on.
func RedisCluster(t testing.TB) *ClusterNodes {
	t.Helper()
	c := &ClusterNodes{t: t}
	create := []string{"--cluster", "create"}
	for range 6 {
		port, err := BusPort()
		if err != nil {
			t.Fatal(err)
		}
		node := redisAt(t, port, "--cluster-enabled", "yes", "--cluster-node-timeout", "500",
			"--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0")
		c.Nodes = append(c.Nodes, node)
		create = append(create, node.Addr)
		c.URL += "&addr=" + node.Addr
	}
	c.URL = "redis://" + c.Nodes[0].Addr + "?" + c.URL[1:]
	out, err := exec.Command(Binary(t, "redis-cli"), append(create, "--cluster-replicas", "1", "--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli --cluster create: %v\n%s", err, out)
	}
	c.AwaitWhole()
	return c
}

// AwaitWhole waits until each node sees that all slots are served and each master has its replica, and until the replicas have
// what their masters hold.
func (c *ClusterNodes) AwaitWhole() {
	c.t.Helper()
	whole := func() bool { return !slices.ContainsFunc(c.Nodes, func(n *RedisServer) bool { return !n.seesWhole() }) }
	if !Eventually(20*time.Second, whole) {
		c.t.Fatal("the cluster is not whole after 20 s")
	}
	for _, n := range c.Nodes {
		n.awaitReplica()
	}
}

// awaitReplica waits, if the node is a master, until its replica follows: for a second after it was given all of the data it
// is sent nothing.
func (s *RedisServer) awaitReplica() {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: 1, ReadTimeout: 20 * time.Second})
	defer c.Close()
	for key := range 200 { // one of them is the node's
		if c.Set(context.Background(), strconv.Itoa(key), "", time.Millisecond).Err() == nil {
			if n := c.Wait(context.Background(), 1, 10*time.Second).Val(); n == 0 {
				s.t.Fatalf("no replica follows %s", s.Addr)
			}
			return
		}
	}
}

// BusPort returns a free port whose neighbour 10000 above, which the nodes of a cluster talk over, is free too. It is below
// those that the system gives away.
func BusPort() (int, error) {
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if free(port) && free(port+10000) {
			return port, nil
		}
	}
	return 0, errors.New("no free port for a node of a cluster")
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// seesWhole reports whether all slots are served by masters that have a replica each, as the node sees it; and if it is one,
// whether it is linked to its master.
func (s *RedisServer) seesWhole() bool {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer c.Close()
	link := c.InfoMap(context.Background(), "replication").Item("Replication", "master_link_status")
	slots := 0
	for _, r := range slotsOf(c).Val() {
		slots += r.End - r.Start + 1
		if len(r.Nodes) < 2 {
			return false
		}
	}
	return slots == 1<<14 && link != "down" && strings.Contains(c.ClusterInfo(context.Background()).Val(), "cluster_state:ok")
}

// slotsOf asks a node who holds which slots.
func slotsOf(c *redis.Client) *redis.ClusterSlotsCmd {
	slots := redis.NewClusterSlotsCmd(context.Background(), "cluster", "slots")
	_ = c.Process(context.Background(), slots) // the command keeps the error
	return slots
}

// Holds returns what tells whether the master holds a slot, as the master itself sees it.
func (c *ClusterNodes) Holds(master *RedisServer) func(slot int) bool {
	c.t.Helper()
	ranges, err := slotsOf(master.Client()).Result()
	if err != nil {
		c.t.Fatalf("cluster slots of %s: %v", master.Addr, err)
	}
	return func(slot int) bool {
		return slices.ContainsFunc(ranges, func(r redis.ClusterSlot) bool {
			return r.Start <= slot && slot <= r.End && len(r.Nodes) > 0 && r.Nodes[0].Addr == master.Addr
		})
	}
}

// Master returns the node that holds the slot; nil while none says so of itself.
func (c *ClusterNodes) Master(slot int) *RedisServer {
	c.t.Helper()
	for _, n := range c.Nodes {
		if n.cmd != nil && c.Holds(n)(slot) {
			return n
		}
	}
	return nil
}

// Replica returns the node that replicates the master.
func (c *ClusterNodes) Replica(master *RedisServer) *RedisServer {
	c.t.Helper()
	id := c.id(master)
	for _, n := range c.Nodes {
		for line := range strings.Lines(c.do(n, "cluster", "nodes")) {
			if f := strings.Fields(line); strings.Contains(f[2], "myself,slave") && f[3] == id {
				return n
			}
		}
	}
	c.t.Fatalf("%s has no replica", master.Addr)
	return nil
}

// BeginMove marks the slot as on its way from one master to the other.
func (c *ClusterNodes) BeginMove(slot int, from, to *RedisServer) {
	c.t.Helper()
	c.do(to, "cluster", "setslot", slot, "importing", c.id(from))
	c.do(from, "cluster", "setslot", slot, "migrating", c.id(to))
}

// MoveKeys moves keys of a slot that is on its way, so many at most, and returns how many it has moved.
func (c *ClusterNodes) MoveKeys(slot int, from, to *RedisServer, most int) int {
	c.t.Helper()
	keys := from.Client().ClusterGetKeysInSlot(context.Background(), slot, most).Val()
	if len(keys) == 0 {
		return 0
	}
	host, port, _ := net.SplitHostPort(to.Addr)
	args := []any{"migrate", host, port, "", 0, 5000, "keys"}
	for _, key := range keys {
		args = append(args, key)
	}
	c.do(from, args...)
	return len(keys)
}

// Move moves the slot and all its keys.
func (c *ClusterNodes) Move(slot int, from, to *RedisServer) {
	c.t.Helper()
	c.BeginMove(slot, from, to)
	c.EndMove(slot, from, to)
}

// EndMove moves what keys are left and makes the slot the new master's.
func (c *ClusterNodes) EndMove(slot int, from, to *RedisServer) {
	c.t.Helper()
	for c.MoveKeys(slot, from, to, 100) > 0 {
	}
	for _, n := range []*RedisServer{to, from} {
		c.do(n, "cluster", "setslot", slot, "node", c.id(to))
	}
}

// Failover makes the replica the master, by command.
func (c *ClusterNodes) Failover(replica *RedisServer) {
	c.t.Helper()
	c.do(replica, "cluster", "failover")
}

// Takeover makes the replica the master without asking anybody, as when the others cannot be reached.
func (c *ClusterNodes) Takeover(replica *RedisServer) {
	c.t.Helper()
	c.do(replica, "cluster", "failover", "takeover")
}

func (c *ClusterNodes) id(n *RedisServer) string {
	c.t.Helper()
	return c.do(n, "cluster", "myid")
}

func (c *ClusterNodes) do(n *RedisServer, args ...any) string {
	c.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: n.Addr, MaxRetries: -1, ReadTimeout: 10 * time.Second})
	defer client.Close()
	text, err := client.Do(context.Background(), args...).Text()
	if err != nil {
		c.t.Fatalf("%v on %s: %v", args, n.Addr, err)
	}
	return text
}
