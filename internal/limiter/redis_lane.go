package limiter

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"
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
//
// Whoever makes busySince something else than idle owns the lane and what stands below in it, until he makes it idle again. A
// caller who finds the first lane idle carries his take himself, which spares two switches between goroutines; all else is done
// by the lane's keeper.
type lane struct {
	server *server
	first  bool // the others sleep until they are called
	// busySince is when the batch under way, or the one with which the connection was lost, was sent, or when the first
	// attempt to connect began, in ns since the Unix epoch; or one of the constants below.
	busySince atomic.Int64
	slow      atomic.Bool   // a round trip is longer than quick
	turn      chan struct{} // hands the first lane over to its keeper
	closing   atomic.Bool   // the keeper waits for the first lane, to close it

	link      link
	lost      error // why the connection is not good any more
	batch     []*call
	underway  []shared      // what the batch became
	answered  int           // how many of these are
	again     []shared      // what was refused before it ran
	roundTrip time.Duration // of the quicker ones among the last batches
	most      int           // takes in a batch: maxBatch, less while Redis needs a whole budget for so many
}

const (
	idle = 0
	down = -1 // without a connection, and the last attempt to get one has failed
)

func newLane(v *server, first bool) *lane {
	l := &lane{server: v, first: first, turn: make(chan struct{}, 1), most: maxBatch}
	l.busySince.Store(down)
	return l
}

// own makes the lane the caller's, if it is idle.
func (l *lane) own(now time.Time) bool { return l.busySince.CompareAndSwap(idle, now.UnixNano()) }

// release makes the first lane idle, or hands it to its keeper if takes wait.
func (l *lane) release() {
	l.busySince.Store(idle)
	if len(l.server.queue) > 0 || l.closing.Load() {
		l.callKeeper(time.Now())
	}
}

// callKeeper makes the keeper of the first lane carry what waits, if the lane is idle.
func (l *lane) callKeeper(now time.Time) {
	if l.own(now) {
		l.turn <- struct{}{}
	}
}

// lead carries a call over the first lane, which is the caller's own, and those that wait with it. It returns when all of them have
// ended, or the deadline of the call or the lane's patience is over; what is left to do then is the keeper's.
func (l *lane) lead(c *call) {
	now := time.Now()
	l.gather(c, now)
	by := c.deadline
	if end := now.Add(l.bound()); end.Before(by) {
		by = end
	}
	err := l.exchange(now, by)
	if err == nil {
		l.release()
		return
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		l.lose(err)
	}
	l.turn <- struct{}{}
}

// keep carries over the first lane what its callers do not, until the connection is lost or ctx ends. It owns the lane before
// and after.
func (l *lane) keep(ctx context.Context) {
	for l.carry() {
		l.release()
		select {
		case <-l.turn:
		case <-ctx.Done():
			l.closing.Store(true)
			if !l.busySince.CompareAndSwap(idle, down) {
				<-l.turn
			}
			return
		}
	}
}

// help carries over one of the other lanes what the first is too slow for, until the connection is lost or ctx ends.
func (l *lane) help(ctx context.Context) {
	for l.carry() {
		l.busySince.Store(idle)
		select {
		case <-l.server.help:
		case <-ctx.Done():
			return
		}
	}
}

// carry reads the replies that are still to come, and carries what waits. It reports whether the connection is still good.
func (l *lane) carry() (good bool) {
	err := l.lost
	if err == nil && l.answered < len(l.underway) {
		err = l.complete(time.Unix(0, l.busySince.Load()).Add(l.bound()))
	}
	needed := time.Duration(0) // Redis is not busy: who comes late was held up in this process
	for err == nil {
		c := l.next()
		if c == nil {
			return true
		}
		now := time.Now()
		l.gather(c, now.Add(needed))
		err = l.exchange(now, now.Add(l.bound()))
		needed = min(l.roundTrip, l.server.store.timeout/2)
	}
	l.lose(err)
	return false
}

// bound is how long a batch may be under way.
func (l *lane) bound() time.Duration { return max(patience, l.server.store.timeout) }

// next returns a call that waits for the lane; nil if there is none.
func (l *lane) next() *call {
	if !l.first && l.server.lanes[0].isQuick(time.Now()) {
		return nil
	}
	return l.server.waiting()
}

// isQuick reports whether the lane, which is the first, needs no help.
func (l *lane) isQuick(now time.Time) bool {
	at := l.busySince.Load()
	return at == idle || at != down && !l.slow.Load() && now.UnixNano()-at < int64(quick)
}

// gather makes a batch of a take and of those that wait behind it. A take that would have given up by the time at which a reply
// can be here must not be spent: in an overload Redis would work for nobody else. One with half its budget left always goes, so
// that a single slow moment does not stop all.
func (l *lane) gather(first *call, soonest time.Time) {
	l.batch = l.batch[:0]
	for c := first; c != nil; c = l.server.waiting() {
		if c.deadline.Before(soonest) {
			c.end(nil, context.DeadlineExceeded)
			continue
		}
		if l.batch = append(l.batch, c); len(l.batch) == l.most {
			break
		}
	}
}

// exchange asks Redis about the batch in one round trip and answers its takes. Its error is that of complete.
func (l *lane) exchange(now, by time.Time) error {
	if len(l.batch) == 0 {
		return nil
	}
	l.busySince.Store(now.UnixNano())
	l.underway = join(l.underway[:0], l.batch)
	l.queue()
	l.link.sendUntil(now.Add(l.bound()))
	if err := l.complete(by); err != nil {
		return err
	}
	l.learn(time.Since(now))
	return nil
}

// queue makes the commands under way ready to be sent.
func (l *lane) queue() {
	l.answered = 0
	for i := range l.underway {
		l.link.out = l.underway[i].appendTo(l.link.out)
	}
}

// complete sends what is queued and answers the takes as the replies come. If those are not here by then, the error is
// os.ErrDeadlineExceeded and it can be called again. After any other the connection is lost.
func (l *lane) complete(by time.Time) error {
	l.link.receiveUntil(by)
	for l.answered < len(l.underway) {
		err := l.link.send()
		for err == nil && l.answered < len(l.underway) {
			err = l.answer(&l.underway[l.answered])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		} else if err != nil {
			l.lost = err
			return err
		}
		l.underway, l.again = l.again, l.underway[:0]
		l.queue()
	}
	return l.lost
}

// answer reads the reply to a command and answers its takes, or sees to it that they are sent again.
func (l *lane) answer(s *shared) error {
	if s.calls[0].asking && !s.asked {
		_, err := l.link.reply()
		if _, replied := err.(errorReply); err != statusReply("OK") && !replied { // what is wrong, the next reply says
			return err
		}
		s.asked = true
	}
	numbers, err := l.link.reply()
	if _, replied := err.(errorReply); err != nil && !replied {
		return err
	}
	l.answered++
	again := len(l.again)
	if l.again = s.retry(l.again, err); len(l.again) > again {
		return nil
	}
	if !s.end(numbers, err) {
		l.lost = cmp.Or(err, errReply)
	}
	return nil
}

// lose ends what is under way.
func (l *lane) lose(err error) {
	l.lost = err
	for _, left := range [][]shared{l.underway[l.answered:], l.again} {
		for i := range left {
			left[i].end(nil, err)
		}
	}
	l.underway, l.again, l.answered = l.underway[:0], l.again[:0], 0
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
