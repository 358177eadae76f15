package limiter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxBatch bounds the takes that go out together: they hold Redis for a millisecond with one hit each.
	maxBatch = 128
	// patience is how long a lane waits for a reply, long after its takes have given up, before it counts the connection as
	// dead. Closing it earlier would answer a slow moment with a storm of new connections.
	patience = 300 * time.Millisecond
)

// lane is one connection to a server. It carries one batch of takes at a time: those that come while it is under way make up
// the next, so that batches grow with the load and a single take waits for nobody.
type lane struct {
	server *server
	first  bool // the others sleep until they are called
	// busySince is when the batch under way, or the one with which the connection was lost, was sent, or when the first
	// attempt to connect began, in ns since the Unix epoch; or one of the constants below.
	busySince atomic.Int64
	roundTrip time.Duration // of the quicker ones among the last batches
	slow      atomic.Bool   // that is longer than quick
	most      int           // takes in a batch: maxBatch, less while Redis needs a whole budget for so many
}

const (
	idle = 0
	down = -1 // without a connection, and the last attempt to get one has failed
)

func newLane(v *server, first bool) *lane {
	l := &lane{server: v, first: first, most: maxBatch}
	l.busySince.Store(down)
	return l
}

// serve carries batches over the client's connection until that is no longer good or ctx ends.
func (l *lane) serve(ctx context.Context, client *redis.Client) {
	// The end of ctx ends a wait for a reply too.
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	batch := make([]*call, 0, maxBatch)
	for good := true; good; {
		var first *call
		needed := l.roundTrip
		if l.first || !l.server.lanes[0].isQuick(time.Now()) {
			first = l.server.waiting()
		}
		if first == nil {
			needed = 0 // Redis is not busy: who comes late was held up in this process
			if first = l.next(ctx); first == nil {
				return
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

// next waits for a take; it is nil when ctx has ended.
func (l *lane) next(ctx context.Context) *call {
	queue, help := l.server.queue, l.server.help
	if l.first {
		help = nil
	} else {
		queue = nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-queue:
			return c
		case <-help:
			if c := l.server.waiting(); c != nil {
				return c
			}
		}
	}
}

// isQuick reports whether the lane, which is the first, needs no help.
func (l *lane) isQuick(now time.Time) bool {
	at := l.busySince.Load()
	return at == idle || at != down && !l.slow.Load() && now.UnixNano()-at < int64(quick)
}

// learn takes notice of how long a batch took. The estimate of a round trip goes quickly down and slowly up, because in a
// process that is short of CPU most measurements hold more than that.
func (l *lane) learn(took time.Duration) {
	if took < l.roundTrip {
		l.roundTrip -= (l.roundTrip - took) / 2
	} else {
		l.roundTrip += (took - l.roundTrip) / 32
	}
	if slow := l.roundTrip > quick; slow != l.slow.Load() {
		l.slow.Store(slow)
	}
	if took > l.server.store.timeout {
		l.most = max(1, l.most/2)
	} else {
		l.most = min(maxBatch, l.most+1+l.most/8)
	}
}

// gather puts a take and those that wait behind it into the batch. A take that would have given up before the reply is
// here, which needs that long, must not be spent: in an overload Redis would work for nobody else. One with half its
// budget left always goes, so that a single slow moment does not stop all.
func (l *lane) gather(batch []*call, first *call, needed time.Duration) []*call {
	soonest := time.Now().Add(min(needed, l.server.store.timeout/2))
	for c := first; c != nil; c = l.server.waiting() {
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

// send asks Redis about a batch in one round trip, and answers its takes. It reports whether the connection is still good.
func (l *lane) send(ctx context.Context, client *redis.Client, batch []*call) (good bool) {
	good = true
	var again []*shared
	for _, c := range pipeline(ctx, client, join(batch)) {
		if retry := c.retry(); retry != nil {
			again = append(again, retry...)
		} else {
			good = c.end() && good
		}
	}
	for _, c := range pipeline(ctx, client, again) {
		good = c.end() && good
	}
	return good
}

// pipeline sends commands and reads their replies. Each has a reply or an error then.
func pipeline(ctx context.Context, client *redis.Client, batch []*shared) []*shared {
	if len(batch) == 0 {
		return nil
	}
	pipe := client.Pipeline()
	for _, c := range batch {
		if c.asking {
			_ = pipe.Process(ctx, redis.NewStatusCmd(ctx, "asking"))
		}
		c.reply = redis.NewIntSliceCmd(ctx, c.words(c.eval)...)
		_ = pipe.Process(ctx, c.reply) // only queues
	}
	_, err := pipe.Exec(ctx)
	for _, c := range batch {
		if err != nil && c.reply.Err() == nil && c.reply.Val() == nil {
			c.reply.SetErr(err) // none was sent
		}
	}
	return batch
}
