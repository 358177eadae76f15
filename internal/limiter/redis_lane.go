package limiter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitd/ratelimitd/lua"
)

const (
	// laneCount is how many connections carry the takes. One would do for throughput; with a few, a take seldom waits for
	// the batch before it, also where a round trip takes milliseconds.
	laneCount = 4
	// maxBatch bounds the takes that go out together: they hold Redis for about a millisecond.
	maxBatch = 128
	// maxQueue bounds the takes that wait for a lane. When it is full, a take waits for a place within its budget.
	maxQueue = 1 << 14
	// stall is how long after its takes have given up a lane that waits for a reply counts as overdue.
	stall = 100 * time.Millisecond
	// patience is how long a lane waits for a reply, long after its takes have given up, before it counts the connection as
	// dead. Closing it earlier would answer a slow moment with a storm of new connections.
	patience = 300 * time.Millisecond
)

// call is one take on its way to Redis.
type call struct {
	args      []any
	abandoned atomic.Bool   // its caller has given up
	done      chan struct{} // closed when the two below are set
	reply     []int64
	err       error
}

func (c *call) end(reply []int64, err error) {
	c.reply, c.err = reply, err
	close(c.done)
}

// call sends a command to Redis and waits for its reply, for that long.
func (s *Redis) call(args []any, budget time.Duration) ([]int64, error) {
	c := &call{args: args, done: make(chan struct{})}
	late := time.NewTimer(budget)
	defer late.Stop()
	select {
	case s.queue <- c:
	case <-late.C:
		return nil, context.DeadlineExceeded
	}
	select {
	case <-c.done:
		return c.reply, c.err
	case <-late.C:
		c.abandoned.Store(true)
	}
	select {
	case <-c.done: // in the same moment
		return c.reply, c.err
	default:
		return nil, context.DeadlineExceeded
	}
}

// answers reports whether a take has a chance. If no lane has a connection, or all of them wait for replies that are
// overdue, nothing is asked of Redis.
func (s *Redis) answers(now time.Time) bool {
	overdue := now.Add(-s.timeout - stall).UnixNano()
	for _, l := range s.lanes {
		if at := l.busySince.Load(); at == idle || at > overdue {
			return true
		}
	}
	return false
}

// lane is one connection to Redis. It carries one batch of takes at a time: those that come while it is under way make up
// the next, so that batches grow with the load and a single take waits for nobody.
type lane struct {
	store *Redis
	// busySince is when the batch under way, or the one with which the connection was lost, was sent, in ns since the Unix
	// epoch; or one of the constants below.
	busySince atomic.Int64
}

const (
	idle = 0
	down = -1 // without a connection, and the last attempt to get one has failed
)

func newLane(s *Redis) *lane {
	l := &lane{store: s}
	l.busySince.Store(down)
	return l
}

// serve carries batches over the client's connection until that is no longer good or ctx ends.
func (l *lane) serve(ctx context.Context, client *redis.Client) {
	batch := make([]*call, 0, maxBatch)
	for good := true; good; {
		select {
		case <-ctx.Done():
			return
		case first := <-l.store.queue:
			batch = l.gather(batch[:0], first)
		}
		l.busySince.Store(time.Now().UnixNano())
		good = l.send(ctx, client, batch)
		if good {
			l.busySince.Store(idle)
		}
	}
}

// gather puts a take and those that wait behind it into the batch. Takes whose callers have given up must not be spent.
func (l *lane) gather(batch []*call, first *call) []*call {
	for c := first; c != nil; c = l.store.waiting() {
		if c.abandoned.Load() {
			continue
		}
		if batch = append(batch, c); len(batch) == maxBatch {
			break
		}
	}
	return batch
}

// waiting returns a take that waits for a lane; nil if there is none.
func (s *Redis) waiting() *call {
	select {
	case c := <-s.queue:
		return c
	default:
		return nil
	}
}

// send asks Redis about a batch in one round trip, and answers its takes. It reports whether the connection is still good.
func (l *lane) send(ctx context.Context, client *redis.Client, batch []*call) (good bool) {
	ctx, cancel := context.WithTimeout(ctx, max(patience, l.store.timeout))
	defer cancel()
	commands := pipeline(ctx, client, batch)
	var forgotten []*call
	good = true
	for i, c := range batch {
		reply, err := commands[i].Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			// Redis answers so before it has run anything: asked once more with the script, nothing is counted twice.
			c.args[0], c.args[1] = "eval", lua.Driver
			forgotten = append(forgotten, c)
			continue
		}
		good = l.store.note(err) && good
		c.end(reply, err)
	}
	for i, command := range pipeline(ctx, client, forgotten) {
		reply, err := command.Result()
		good = l.store.note(err) && good
		forgotten[i].end(reply, err)
	}
	return good
}

// pipeline sends the commands of a batch and reads their replies.
func pipeline(ctx context.Context, client *redis.Client, batch []*call) []*redis.IntSliceCmd {
	if len(batch) == 0 {
		return nil
	}
	commands := make([]*redis.IntSliceCmd, len(batch))
	pipe := client.Pipeline()
	for i, c := range batch {
		commands[i] = redis.NewIntSliceCmd(ctx, c.args...)
		_ = pipe.Process(ctx, commands[i]) // only queues
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	return commands
}
