package limiter

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookPause lies between the beginnings of two looks at where the buckets are, however many doubt it.
	lookPause = 200 * time.Millisecond
	// namedFor is for how long a server of a cluster is kept that holds nothing any more, or that a take was sent on to.
	namedFor = 10 * time.Second
)

// servers are those that hold the buckets, and those that a cluster has named in place of one.
type servers struct {
	store  *Redis
	doubts chan struct{} // holds one while somebody doubts that the buckets are still there
	// slots has the server of each slot, nil where none is known. Without a cluster there is slot 0 alone.
	slots [slotCount]atomic.Pointer[server]

	mu     sync.Mutex
	ctx    context.Context    // of the servers; nil before the start and after the end
	known  map[string]*server // by address
	owners []*server          // those that hold buckets
}

func (v *servers) init(s *Redis) {
	v.store, v.doubts, v.known = s, make(chan struct{}, 1), make(map[string]*server)
}

// start finds the servers and returns when a first attempt to connect to each is over. It follows them until ctx ends.
func (v *servers) start(ctx context.Context) {
	v.mu.Lock()
	v.ctx = ctx
	v.mu.Unlock()
	switch origin := &v.store.origin; origin.mode {
	case ModeCluster:
		v.follow(ctx, newClusterView(origin), clusterInterval)
	case ModeSentinel:
		v.follow(ctx, newSentinels(origin), sentinelInterval)
	default:
		v.hold([]slotRange{{addr: origin.addrs[0]}})
	}
	for _, owner := range v.owning() {
		select {
		case <-owner.tried:
		case <-ctx.Done():
		}
	}
}

// slotRange is the slots from first to last, both included, that one server holds.
type slotRange struct {
	first, last uint16
	addr        string
}

// view finds out where the buckets are.
type view interface {
	// look returns who holds what. well says that all servers of the last answer can be reached.
	look(ctx context.Context, well bool) ([]slotRange, error)
	close()
}

// follow looks once, and then on until ctx ends: at that interval, and soon after each doubt.
func (v *servers) follow(ctx context.Context, where view, interval time.Duration) {
	v.look(ctx, where)
	v.store.running.Go(func() {
		defer where.close()
		for {
			pause, next := time.After(lookPause), time.NewTimer(interval)
			select {
			case <-ctx.Done():
				return
			case <-v.doubts:
			case <-next.C:
			}
			next.Stop()
			select {
			case <-ctx.Done():
				return
			case <-pause:
			}
			v.look(ctx, where)
		}
	})
}

func (v *servers) look(ctx context.Context, where view) {
	ctx, cancel := context.WithTimeout(ctx, 2*v.store.connectTimeout())
	defer cancel()
	ranges, err := where.look(ctx, v.answer(time.Now()))
	if err != nil {
		v.store.trouble.Store(&err)
		return
	}
	v.hold(ranges)
}

// doubt makes the next look come soon. It waits for nothing.
func (v *servers) doubt() {
	select {
	case v.doubts <- struct{}{}:
	default:
	}
}

// hold makes these the servers that hold buckets: new ones connect, those that hold none are closed; of a cluster, later.
func (v *servers) hold(ranges []slotRange) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ctx == nil {
		return
	}
	if v.store.origin.mode == ModeCluster {
		for _, before := range v.owners { // takes that are on their way to it are still answered
			before.named.Store(time.Now().UnixNano())
		}
	}
	var slots [slotCount]*server
	v.owners = nil
	for _, part := range ranges {
		owner := v.at(part.addr)
		for slot := int(part.first); slot <= int(part.last); slot++ {
			slots[slot] = owner
		}
		if !slices.Contains(v.owners, owner) {
			v.owners = append(v.owners, owner)
		}
	}
	for slot, owner := range slots {
		v.slots[slot].Store(owner)
	}
	for addr, s := range v.known {
		if !slices.Contains(v.owners, s) && time.Now().UnixNano()-s.named.Load() > int64(namedFor) {
			delete(v.known, addr)
			s.stop()
		}
	}
}

// at returns the server of that address. The caller holds mu.
func (v *servers) at(addr string) *server {
	s := v.known[addr]
	if s == nil {
		s = newServer(v.store, addr)
		v.known[addr] = s
		s.start(v.ctx)
	}
	return s
}

// name returns the server that a cluster has sent a take to; nil after the end.
func (v *servers) name(addr string) *server {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ctx == nil {
		return nil
	}
	s := v.at(addr)
	s.named.Store(time.Now().UnixNano())
	return s
}

func (v *servers) owning() []*server {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.owners
}

// answer reports whether all servers that hold buckets answer, and are known.
func (v *servers) answer(now time.Time) bool {
	owners := v.owning()
	return len(owners) > 0 && !slices.ContainsFunc(owners, func(s *server) bool { return !s.answers(now) })
}

// greeted reports whether one of them has answered, and each was tried. A cluster may lack a master for long: that must not
// keep daemons from starting.
func (v *servers) greeted() bool {
	owners := v.owning()
	for _, s := range owners {
		select {
		case <-s.tried:
		default:
			return false
		}
	}
	return slices.ContainsFunc(owners, func(s *server) bool { return s.greeted.Load() })
}

// close keeps new servers from being made.
func (v *servers) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ctx = nil
}
