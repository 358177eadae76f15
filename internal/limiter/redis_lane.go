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
	// maxBatch bounds the takes that go out together: they hold Redis for a millisecond with one hit each.
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
	args     []any
	deadline time.Time
	done     chan struct{} // closed when the two below are set
	reply    []int64
	err      error
}

func (c *call) end(reply []int64, err error) {
	c.reply, c.err = reply, err
	close(c.done)
}

// call sends a command to Redis and waits for its reply, for that long.
func (s *Redis) call(args []any, now time.Time, budget time.Duration) ([]int64, error) {
	c := &call{args: args, deadline: now.Add(budget), done: make(chan struct{})}
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

// dismiss answers the takes that wait for a lane, if none is left to carry them.
func (s *Redis) dismiss() {
	if s.answers(time.Now()) {
		return
	}
	for c := s.waiting(); c != nil; c = s.waiting() {
		c.end(nil, errCircuitOpen)
	}
}

// lane is one connection to Redis. It carries one batch of takes at a time: those that come while it is under way make up
// the next, so that batches grow with the load and a single take waits for nobody.
type lane struct {
	store *Redis
	// busySince is when the batch under way, or the one with which the connection was lost, was sent, in ns since the Unix
	// epoch; or one of the constants below.
	busySince atomic.Int64
	roundTrip time.Duration // of the quicker ones among the last batches
	most      int           // takes in a batch: maxBatch, less while Redis needs a whole budget for so many
}

const (
	idle = 0
	down = -1 // without a connection, and the last attempt to get one has failed
)

func newLane(s *Redis) *lane {
	l := &lane{store: s, most: maxBatch}
	l.busySince.Store(down)
	return l
}

// serve carries batches over the client's connection until that is no longer good or ctx ends.
func (l *lane) serve(ctx context.Context, client *redis.Client) {
	// The end of ctx ends a wait for a reply too.
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	batch := make([]*call, 0, maxBatch)
	for good := true; good; {
		first, needed := l.store.waiting(), l.roundTrip
		if first == nil {
			needed = 0 // Redis is not busy: who comes late was held up in this process
			select {
			case <-ctx.Done():
				return
			case first = <-l.store.queue:
			}
		}
		batch = l.gather(batch[:0], first, needed)
		sent := time.Now()
		l.busySince.Store(sent.UnixNano())
		if good = l.send(ctx, client, batch); good {
			l.busySince.Store(idle)
			l.learn(time.Since(sent))
		}
	}
}

// learn takes notice of how long a batch took. The estimate of a round trip goes quickly down and slowly up, because in a
// process that is short of CPU most measurements hold more than that.
func (l *lane) learn(took time.Duration) {
	if took < l.roundTrip {
		l.roundTrip -= (l.roundTrip - took) / 2
	} else {
		l.roundTrip += (took - l.roundTrip) / 32
	}
	if took > l.store.timeout {
		l.most = max(1, l.most/2)
	} else {
		l.most = min(maxBatch, l.most+1+l.most/8)
	}
}

// gather puts a take and those that wait behind it into the batch. A take that would have given up before the reply is
// here, which needs that long, must not be spent: in an overload Redis would work for nobody else. One with half its
// budget left always goes, so that a single slow moment does not stop all.
func (l *lane) gather(batch []*call, first *call, needed time.Duration) []*call {
	soonest := time.Now().Add(min(needed, l.store.timeout/2))
	for c := first; c != nil; c = l.store.waiting() {
		if c.deadline.Before(soonest) {
			c.end(nil, context.DeadlineExceeded)
			continue
		}
		if batch = append(batch, c); len(batch) == l.most {
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
	good = true
	var forgotten []*call
	for i, command := range pipeline(ctx, client, batch) {
		reply, err := command.Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") && time.Now().Before(batch[i].deadline) {
			// Redis answers so before it has run anything: asked once more with the script, nothing is counted twice.
			batch[i].args[0], batch[i].args[1] = "eval", lua.Driver
			forgotten = append(forgotten, batch[i])
			continue
		}
		good = good && keepsConnection(err)
		batch[i].end(reply, err)
	}
	for i, command := range pipeline(ctx, client, forgotten) {
		reply, err := command.Result()
		good = good && keepsConnection(err)
		forgotten[i].end(reply, err)
	}
	return good
}

// pipeline sends the commands of a batch and reads their replies. Each command has a reply or an error then.
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
	_, err := pipe.Exec(ctx)
	for _, command := range commands {
		if err != nil && command.Err() == nil && command.Val() == nil {
			command.SetErr(err) // none was sent
		}
	}
	return commands
}
