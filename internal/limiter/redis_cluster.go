package limiter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// clusterInterval is how often a cluster that gives no cause for doubt is asked which master holds what.
	clusterInterval = 3 * time.Second
	// maxHops bounds how often a take is sent on from one node to the next.
	maxHops = 5
)

// clusterView asks one node of a cluster who holds what, over a connection of its own; and the next one when that fails, or
// when a master is lost, because not all nodes hear at the same time who takes its place.
type clusterView struct {
	options redis.Options
	seeds   []string
	timeout time.Duration // of one attempt
	nodes   []string      // masters and replicas of the last answer
	asked   string        // the node that was asked last
	client  *redis.Client // to it; nil if there is none
}

func newClusterView(o *origin) *clusterView {
	return &clusterView{options: o.options, seeds: o.addrs, timeout: o.options.DialTimeout}
}

func (c *clusterView) look(ctx context.Context, well bool) ([]slotRange, error) {
	if c.client != nil && well {
		if ranges, err := c.ask(ctx); err == nil {
			return ranges, nil
		}
	}
	errs := []error{errors.New("no node says where the slots of the cluster are")}
	for _, addr := range c.others() {
		c.close()
		options := c.options
		options.Addr = addr
		c.asked, c.client = addr, redis.NewClient(&options)
		ranges, err := c.ask(ctx)
		if err == nil {
			return ranges, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, joined(errs)
}

// others are the nodes to ask, from the one behind the last on; then the seeds.
func (c *clusterView) others() []string {
	next := slices.Index(c.nodes, c.asked) + 1
	all := slices.Concat(c.nodes[next:], c.nodes[:next])
	for _, seed := range c.seeds {
		if !slices.Contains(all, seed) {
			all = append(all, seed)
		}
	}
	return all
}

// ask asks the connected node.
func (c *clusterView) ask(ctx context.Context) ([]slotRange, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	slots := redis.NewClusterSlotsCmd(ctx, "cluster", "slots") // what is to replace it, Redis 6 does not have
	if err := c.client.Process(ctx, slots); err != nil {
		return nil, fmt.Errorf("redis %s: %w", c.asked, explain(ModeCluster, err))
	}
	var ranges []slotRange
	var nodes []string
	for _, r := range slots.Val() {
		if r.Start < 0 || r.End >= slotCount || len(r.Nodes) == 0 {
			return nil, fmt.Errorf("redis %s: slots %d to %d with %d nodes", c.asked, r.Start, r.End, len(r.Nodes))
		}
		ranges = append(ranges, slotRange{uint16(r.Start), uint16(r.End), near(c.asked, r.Nodes[0].Addr)})
		for _, node := range r.Nodes {
			if addr := near(c.asked, node.Addr); !slices.Contains(nodes, addr) {
				nodes = append(nodes, addr)
			}
		}
	}
	if len(ranges) == 0 {
		return nil, fmt.Errorf("redis %s: no node holds any slot", c.asked)
	}
	c.nodes = nodes
	return ranges, nil
}

func (c *clusterView) close() {
	if c.client != nil {
		_ = c.client.Close()
		c.client = nil
	}
}

// near completes an address that a node has told without a host: it is the node's own.
func near(node, addr string) string {
	if host, port, err := net.SplitHostPort(addr); err == nil && host == "" {
		if own, _, err := net.SplitHostPort(node); err == nil {
			return net.JoinHostPort(own, port)
		}
	}
	return addr
}

// run sends a call to the server of its slot now and waits for its reply until the deadline. A cluster may send it on; it
// does so before anything is run, so that nothing is counted twice.
func (s *Redis) run(c *call, now, deadline time.Time) error {
	at := s.servers.slots[c.slot].Load()
	for hop := 0; ; hop++ {
		if at == nil {
			return s.nobody()
		}
		err := at.call(c, now, deadline)
		next, asking := s.sentOn(c.slot, at, err)
		if next == nil || hop == maxHops {
			return err
		}
		at, c.asking, now = next, asking, time.Now()
	}
}

// nobody is the error of a take whose slot no server is known to hold.
func (s *Redis) nobody() error {
	s.servers.doubt()
	if len(s.servers.owning()) == 0 {
		return errCircuitOpen
	}
	return errUnserved
}

// sentOn returns the server to which an error sends a take on, nil if it does not. asking says that the slot is still on
// its way there.
func (s *Redis) sentOn(slot uint16, from *server, err error) (to *server, asking bool) {
	if err == errCircuitOpen { // it was not sent: another server may hold the slot by now
		if owner := s.servers.slots[slot].Load(); owner != from {
			return owner, false
		}
	}
	if err == nil || s.origin.mode != ModeCluster {
		return nil, false
	}
	var reply errorReply
	words := []string{""}
	if errors.As(err, &reply) {
		words = strings.Fields(string(reply))
	}
	switch {
	case len(words) == 3 && words[0] == "MOVED":
		s.servers.doubt()
		if to = s.servers.name(near(from.options.Addr, words[2])); to != nil {
			s.servers.slots[slot].Store(to)
		}
		return to, false
	case len(words) == 3 && words[0] == "ASK":
		return s.servers.name(near(from.options.Addr, words[2])), true
	}
	return nil, false
}

// isHalfMoved reports whether a node refused to run a command, because its slot is being moved and the buckets are in part
// here and in part there, or nowhere yet. Each alone can be reached.
func isHalfMoved(err error) bool { return redis.HasErrorPrefix(err, "TRYAGAIN") }
