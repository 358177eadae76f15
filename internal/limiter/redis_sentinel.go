package limiter

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// sentinelInterval is how often the sentinels are asked which server is the master.
	sentinelInterval = 250 * time.Millisecond
	// sentinelPatience is how long one may take to answer.
	sentinelPatience = 300 * time.Millisecond
)

// sentinels are asked all at once. Who was cut off from the others may not have heard of a failover: the one that knows of
// the latest is believed.
type sentinels struct {
	master  string
	addrs   []string
	clients []*redis.SentinelClient
}

func newSentinels(o *origin) *sentinels {
	s := &sentinels{master: o.master, addrs: o.addrs}
	for _, addr := range o.addrs {
		options := o.sentinel
		options.Addr = addr
		s.clients = append(s.clients, redis.NewSentinelClient(&options))
	}
	return s
}

func (s *sentinels) look(ctx context.Context, _ bool) ([]slotRange, error) {
	ctx, cancel := context.WithTimeout(ctx, sentinelPatience)
	defer cancel()
	answers := make([]masterAnswer, len(s.clients))
	var asked sync.WaitGroup
	for i := range s.clients {
		asked.Go(func() { answers[i] = s.ask(ctx, i) })
	}
	asked.Wait()
	addr, err := latest(answers)
	if err != nil {
		return nil, fmt.Errorf("no sentinel names a master %q: %w", s.master, err)
	}
	return []slotRange{{addr: addr}}, nil
}

// masterAnswer is where a sentinel says the master is, and which failover made it so.
type masterAnswer struct {
	addr  string
	epoch uint64
	err   error
}

// latest returns the address that is due to the latest failover, or all errors if there is none.
func latest(answers []masterAnswer) (addr string, err error) {
	var epoch uint64
	var errs []error
	for _, a := range answers {
		if a.err != nil {
			errs = append(errs, a.err)
		} else if addr == "" || a.epoch > epoch {
			addr, epoch = a.addr, a.epoch
		}
	}
	if addr == "" {
		return "", joined(errs)
	}
	return addr, nil
}

func (s *sentinels) ask(ctx context.Context, i int) masterAnswer {
	master, err := s.clients[i].Master(ctx, s.master).Result()
	epoch, wrong := strconv.ParseUint(master["config-epoch"], 10, 64)
	if err == nil {
		err = wrong
	}
	if err != nil {
		return masterAnswer{err: fmt.Errorf("sentinel %s: %w", s.addrs[i], explain(ModeSentinel, err))}
	}
	return masterAnswer{addr: net.JoinHostPort(master["ip"], master["port"]), epoch: epoch}
}

func (s *sentinels) close() {
	for _, c := range s.clients {
		_ = c.Close()
	}
}
