package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/test/harness"
)

// fleet is some daemons, and some stores without a daemon around them, on the same Redis or the same masters of a cluster.
type fleet struct {
	redis   string // as the table names it
	daemons []*server
	stores  []*limiter.Redis
	masters []*redisServer
}

// size says what a fleet is made of.
type size struct {
	daemons, stores, masters int
	clustered                bool
}

// addFleet starts one, and fills the buckets that its daemons are asked about.
func (l *lab) addFleet(redis string, n size) (*fleet, error) {
	f := &fleet{redis: redis}
	options, err := l.addMasters(f, n.masters, n.clustered)
	if err != nil {
		return nil, err
	}
	for range n.stores {
		s, err := limiter.NewRedis(options)
		if err != nil {
			return nil, err
		}
		s.Start(l.ctx)
		l.stops = append(l.stops, func() { _ = s.Close() })
		f.stores = append(f.stores, s)
	}
	configuration := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: \"\"\nstore: {redis: {mode: %s, url: %q, timeout: %s}}\nrules:%s%s",
		options.Mode, options.URL, options.Timeout, redisRules, bucketRules)
	for i := range n.daemons {
		d, err := l.serveDaemon(fmt.Sprintf("%s %d", redis, i), configuration)
		if err != nil {
			return nil, err
		}
		f.daemons = append(f.daemons, d)
	}
	if n.daemons == 0 {
		return f, nil
	}
	return f, l.fill(f)
}

// addMasters starts the Redis of a fleet, or so many masters of a cluster, and returns what leads to them.
func (l *lab) addMasters(f *fleet, n int, clustered bool) (store limiter.RedisOptions, err error) {
	var args []string
	store = limiter.RedisOptions{Mode: limiter.ModeSingle, Timeout: 2 * time.Second}
	for i := range n {
		if clustered {
			args = []string{"--cluster-enabled", "yes", "--cluster-config-file", fmt.Sprintf("nodes-%d-of-%d.conf", i, n)}
		}
		r, err := l.addNode(args...)
		if err != nil {
			return store, err
		}
		f.masters = append(f.masters, r)
	}
	store.URL = f.masters[0].url
	if !clustered {
		return store, nil
	}
	store.Mode = limiter.ModeCluster
	store.URL += "?"
	for _, m := range f.masters {
		store.URL += "&addr=" + m.client.Options().Addr
	}
	return store, l.unite(f.masters)
}

// unite makes a cluster of the nodes, in which each holds as many slots.
func (l *lab) unite(nodes []*redisServer) error {
	const slots = 1 << 14
	for i, n := range nodes {
		host, port, _ := strings.Cut(nodes[0].client.Options().Addr, ":")
		err := errors.Join(
			n.client.Do(l.ctx, "cluster", "set-config-epoch", i+1).Err(),
			n.client.ClusterAddSlotsRange(l.ctx, slots*i/len(nodes), slots*(i+1)/len(nodes)-1).Err(),
			n.client.ClusterMeet(l.ctx, host, port).Err())
		if err != nil {
			return err
		}
	}
	for _, n := range nodes {
		whole := func() bool {
			info := n.client.ClusterInfo(l.ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d", len(nodes)))
		}
		if err := n.await(whole); err != nil {
			return err
		}
	}
	return nil
}

// addNode starts a Redis on a port of the loopback address: on the way between hosts there are no unix sockets.
func (l *lab) addNode(args ...string) (*redisServer, error) {
	port, err := harness.BusPort()
	if err != nil {
		return nil, err
	}
	at := strconv.Itoa(port)
	r, err := startRedisAt(l.ctx, l.dir, "tcp", "127.0.0.1:"+at, append([]string{"--bind", "127.0.0.1", "--port", at}, args...)...)
	if err == nil {
		l.stops = append(l.stops, r.stop)
	}
	return r, err
}

// addReplica starts a replica of a Redis and waits until it follows.
func (l *lab) addReplica(of *redisServer) error {
	host, port, _ := strings.Cut(of.client.Options().Addr, ":")
	dir := filepath.Join(l.dir, "replica")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	r, err := l.addNode("--dir", dir, "--replicaof", host+" "+port)
	if err != nil {
		return err
	}
	return r.await(func() bool {
		return r.client.InfoMap(l.ctx, "replication").Item("Replication", "master_link_status") == "up"
	})
}

// fill asks about each client who will ask, and of those who are to be refused until they are.
func (l *lab) fill(f *fleet) error {
	ask := func(t traffic, daemon int) error {
		r, err := newRequest(aForm, t.path)
		if err != nil {
			return err
		}
		return f.daemons[daemon].askAll(l.ctx, r, t.clients)
	}
	err := errors.Join(ask(sparse(0), 0), ask(small, 0), ask(three, 0))
	for i := range refusedQuota + len(f.daemons) {
		err = errors.Join(err, ask(refused, i%len(f.daemons)))
	}
	return err
}

// received are the bytes that went to Redis.
func (r *redisServer) received() (float64, error) { return r.stat("stats", "total_net_input_bytes") }

// sent are those that came from it, but for what went to its replica.
func (r *redisServer) sent() (float64, error) {
	all, err := r.stat("stats", "total_net_output_bytes")
	replicated, errReplicated := r.replicated()
	return all - replicated, errors.Join(err, errReplicated)
}

// replicated are those.
func (r *redisServer) replicated() (float64, error) {
	return r.stat("replication", "master_repl_offset")
}
