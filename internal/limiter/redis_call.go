package limiter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// call is one command on its way to Redis, and then its reply. It is used again and again.
type call struct {
	command
	deadline time.Time
	reply    []int64
	err      error

	state atomic.Int32  // who was first
	done  chan struct{} // gets one from whoever was
	late  *time.Timer   // calls expire
}

// The states of a call.
const (
	waiting = iota
	ended   // reply and err are set
	expired // the deadline is over; whoever carries the call may still write to it
)

var idleCalls = sync.Pool{New: func() any {
	c := &call{done: make(chan struct{}, 1)}
	c.late = time.AfterFunc(time.Hour, c.expire)
	c.late.Stop()
	return c
}}

// newCall returns a call for free to take back.
func newCall() *call { return idleCalls.Get().(*call) }

// free takes a call back that nobody waits for, unless it is still on its way.
func (c *call) free() {
	if c.state.Load() != expired {
		c.script, c.last, c.err = nil, nil, nil
		idleCalls.Put(c)
	}
}

// begin makes the call wait for its end.
func (c *call) begin(deadline time.Time) {
	c.deadline = deadline
	c.state.Store(waiting)
}

// end ends the call, if it has not expired.
func (c *call) end(reply []int64, err error) {
	c.reply, c.err = append(c.reply[:0], reply...), err
	if c.state.CompareAndSwap(waiting, ended) {
		c.done <- struct{}{}
	}
}

// expire gives the call up, if it has not ended.
func (c *call) expire() {
	if c.state.CompareAndSwap(waiting, expired) {
		c.done <- struct{}{}
	}
}

// wait returns when the call has ended or its deadline, so far away, is over.
func (c *call) wait(left time.Duration) error {
	c.late.Reset(left)
	<-c.done
	stopped, err := c.late.Stop(), c.outcome()
	if !stopped {
		c.state.Store(expired) // expire may be on its way, and must not meet the next use
	}
	return err
}

// outcome is why there is no reply, nil if there is one.
func (c *call) outcome() error {
	if c.state.Load() == expired {
		return context.DeadlineExceeded
	}
	return c.err
}
