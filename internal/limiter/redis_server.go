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
	// batch is, the less of Redis's time and ours it costs. The others help when a round trip is long, so that a take seldom
	// waits for the batch before it, and when the first is lost.
	laneCount = 4
	// quick is the longest time that the first lane may need for a batch before the others help.
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

// call is one command on its way to Redis.
type call struct {
	command
	deadline time.Time
	done     chan struct{} // gets one when the two below are set
	reply    []int64
	err      error
	late     *time.Timer
}

// idleCalls are used again: those that ended before their deadline. Nobody else knows them then.
var idleCalls = sync.Pool{New: func() any {
	late := time.NewTimer(time.Hour)
	late.Stop()
	return &call{done: make(chan struct{}, 1), late: late}
}}

func (c *call) end(reply []int64, err error) {
	c.reply, c.err = reply, err
	c.done <- struct{}{}
}

// call sends a command and waits for its reply until the deadline.
func (v *server) call(what command, deadline time.Time) ([]int64, error) {
	now := time.Now()
	if !v.answers(now) {
		return nil, errCircuitOpen
	}
	c := idleCalls.Get().(*call)
	c.command, c.deadline = what, deadline
	c.late.Reset(deadline.Sub(now))
	defer c.late.Stop()
	select {
	case v.queue <- c: // there is room but in an overload, and to see that alone is quicker
	default:
		select {
		case v.queue <- c:
		case <-c.late.C:
			return nil, v.about(context.DeadlineExceeded)
		}
	}
	if !v.lanes[0].isQuick(now) {
		v.callHelp()
	}
	select {
	case <-c.done:
	case <-c.late.C:
		select {
		case <-c.done: // in the same moment
		default:
			return nil, v.about(context.DeadlineExceeded)
		}
	}
	reply, err := c.reply, c.err
	c.late.Stop()
	c.command, c.reply, c.err = command{}, nil, nil
	idleCalls.Put(c)
	return reply, v.about(err)
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
