package limiter

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// held is the first lane of the store's only server in the hands of a test, and quick for as long as that has it.
func held(t *testing.T, s *Redis) *lane {
	t.Helper()
	awaitLanes(t, s)
	first := s.servers.owning()[0].lanes[0]
	if !first.own(time.Now().Add(time.Hour)) {
		t.Fatal("the first lane is busy")
	}
	return first
}

// D79
func TestTakesThatWaitBehindALostBatchGoOutOverTheOtherConnection(t *testing.T) {
	p := startProxy(t, harness.Redis(t).Addr)
	s := newRedisStore(t, "redis://"+p.listener.Addr().String(), nil, func(o *RedisOptions) { o.Timeout = 2 * time.Second })
	first := held(t, s)
	_ = p.listener.Close() // there will be no new connection
	const takes = 3
	errs := make(chan error, takes)
	for range takes {
		go func() { errs <- takeError(s) }()
	}
	if !harness.Eventually(time.Second, func() bool { return len(first.server.queue) == takes }) {
		t.Fatalf("%d takes wait", len(first.server.queue))
	}
	first.lose(io.EOF)
	first.turn <- struct{}{}
	for range takes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// DESIGN §7
func TestATakeThatFoundNoRoomInTheQueueKeepsToItsBudget(t *testing.T) {
	const budget = time.Second
	s := newRedisStore(t, harness.Redis(t).URL, nil, func(o *RedisOptions) { o.Timeout = budget })
	first := held(t, s)
	queue := first.server.queue
	for range maxQueue {
		queue <- newCall()
	}
	start := time.Now()
	go func() {
		time.Sleep(budget * 9 / 10)
		<-queue
	}()
	if _, err := s.Take(context.Background(), []Hit{hitOf(1, limitOf(SlidingLog, 5, time.Minute), 1)}); ErrorReason(err) != "timeout" {
		t.Errorf("a take that nobody carries: %v", err)
	}
	if took := time.Since(start); took > budget*3/2 {
		t.Errorf("it lasted %v, with a budget of %v", took, budget)
	}
	for len(queue) > 0 {
		<-queue
	}
	first.turn <- struct{}{} // gives the lane back
}

// A caller who was held up, as a busy machine does it, must not spend what nobody waits for, nor ruin the connection for others.
func TestATakeWhoseTimeIsOverIsNotSent(t *testing.T) {
	server := harness.Redis(t)
	s := newRedisStore(t, server.URL, nil)
	awaitLanes(t, s)
	h := hitOf(1, limitOf(SlidingLog, 5, time.Minute), 1)
	for range 5 {
		first := s.servers.owning()[0].lanes[0]
		c := newCall()
		s.command(&c.command, driver, 0, []Hit{h}, words{}, time.Now())
		c.begin(time.Now().Add(-time.Millisecond))
		if !first.own(time.Now()) {
			t.Fatal("the first lane is busy")
		}
		first.lead(c)
		if err := c.wait(time.Minute); ErrorReason(err) != "timeout" {
			t.Errorf("%v", err)
		}
	}
	expect(t, "the first that is in time", mustTake(t, s, h)[0], true, 4)
}
