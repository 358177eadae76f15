package limiter

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// laneCount is how many connections to a server carry the takes. The first does as long as it is quick, because the larger a
	// batch is, the less of Redis's time and ours it costs. The other helps when a round trip is long, so that a take seldom
	// waits for the batch before it, and when the first is lost. More of them would split the batches when it is Redis that
	// takes long, and so make it slower still.
	laneCount = 2
	// quick is the longest time that the first lane may need for a batch before another helps.
	quick = time.Millisecond
	// maxQueue bounds the takes that wait for a lane. When it is full, a take waits for a place within its budget.
	maxQueue = 1 << 14
	// stall is how long after its takes have given up a lane that waits for a reply counts as overdue.
	stall = 100 * time.Millisecond
)

// server is one Redis server: the connections to it and the takes that wait for them.
type server struct {
	store   *Redis
	options redis.Options // of each connection
	lanes   []*lane
	queue   chan *call            // takes that wait for a lane
	help    chan struct{}         // wakes the lanes behind the first
	tried   chan struct{}         // closed after the first attempt to connect
	greeted atomic.Bool           // a lane was connected once
	trouble atomic.Pointer[error] // why the last take or attempt to connect failed
	named   atomic.Int64          // when a cluster last said that buckets are or were here, in ns since the Unix epoch
	stop    context.CancelFunc
}

func newServer(s *Redis, addr string) *server {
	v := &server{store: s, options: s.origin.options, queue: make(chan *call, maxQueue), help: make(chan struct{}, laneCount), tried: make(chan struct{})}
	v.options.Addr = addr
	for i := range laneCount {
		v.lanes = append(v.lanes, newLane(v, i == 0))
	}
	return v
}

// start connects in the background until ctx ends or the server is stopped.
func (v *server) start(ctx context.Context) {
	ctx, v.stop = context.WithCancel(ctx)
	tried := sync.OnceFunc(func() { close(v.tried) })
	for _, l := range v.lanes {
		l.busySince.Store(time.Now().UnixNano()) // takes may wait for the first attempt
		v.store.running.Go(func() { l.run(ctx, tried) })
	}
}

// call sends a command now and waits until it has ended or the deadline is over.
func (v *server) call(c *call, now, deadline time.Time) error {
	if !v.answers(now) {
		return errCircuitOpen
	}
	if !now.Before(deadline) {
		return v.about(context.DeadlineExceeded)
	}
	c.begin(deadline)
	if first := v.lanes[0]; first.own(now) {
		first.lead(c)
		c.expire()
		<-c.done
		return v.about(c.outcome())
	}
	if !v.enqueue(c, deadline.Sub(now)) {
		return v.about(context.DeadlineExceeded)
	}
	v.lanes[0].callKeeper(now)
	if !v.lanes[0].isQuick(now) {
		v.callHelp()
	}
	return v.about(c.wait(time.Until(deadline))) // there may have been no room for long
}

// enqueue reports whether there was room for the call in that time.
func (v *server) enqueue(c *call, left time.Duration) bool {
	select {
	case v.queue <- c:
		return true
	default: // in an overload
	}
	late := time.NewTimer(left)
	defer late.Stop()
	select {
	case v.queue <- c:
		return true
	case <-late.C:
		return false
	}
}

// callHelp wakes one of the lanes behind the first, if one sleeps.
func (v *server) callHelp() {
	select {
	case v.help <- struct{}{}:
	default:
	}
}

// about says which server an error comes from, and remembers it.
func (v *server) about(err error) error {
	if err == nil || err == errCircuitOpen {
		return err
	}
	told := fmt.Errorf("redis %s: %w", v.options.Addr, explain(v.store.origin.mode, err))
	v.trouble.Store(&told)
	return told
}

// answers reports whether a take has a chance. If no lane has a connection, or all of them wait for replies that are
// overdue, nothing is asked of the server.
func (v *server) answers(now time.Time) bool {
	overdue := now.Add(-v.store.timeout - stall).UnixNano()
	for _, l := range v.lanes {
		if at := l.busySince.Load(); at == idle || at > overdue {
			return true
		}
	}
	return false
}

// dismiss answers the takes that wait for a lane, if none is left to carry them.
func (v *server) dismiss() {
	if v.answers(time.Now()) {
		return
	}
	for c := v.waiting(); c != nil; c = v.waiting() {
		c.end(nil, errCircuitOpen)
	}
}

// waiting returns a take that waits for a lane; nil if there is none.
func (v *server) waiting() *call {
	select {
	case c := <-v.queue:
		return c
	default:
		return nil
	}
}
