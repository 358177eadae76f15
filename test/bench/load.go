package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// inFlight is how many callers there are, where nothing else is said.
const inFlight = 64

// ask gets one or more decisions, one after the other or together, and tells how many of them refused.
type ask func() (decisions, refused int, err error)

// subject is something that is measured: callers who ask, as a rule as fast as they get answers, and what that costs.
type subject struct {
	name    string
	callers int // 0 is inFlight
	newAsk  func(caller int) ask
	costs   []cost
	refuses bool          // what the answers have to be, or the figures mean nothing
	once    bool          // in the first round alone
	warm    time.Duration // what is to pass before the measurement; 0 is a sixth of it
	length  time.Duration // of the measurement; 0 is that of all trials
	every   time.Duration // each caller begins an ask so often; 0: as soon as the last is answered
}

// cost is something that grows with the decisions.
type cost struct {
	kind string
	read func() (float64, error) // µs of CPU, or a number of calls
}

// measurement is what came out of one trial of a subject.
type measurement struct {
	decisions float64       // a second
	refused   float64       // share of the decisions
	costs     []float64     // for each decision, in the order of the subject's
	p50, p99  time.Duration // of an ask
}

// counts are what the callers have got so far.
type counts struct{ decisions, refused, failed atomic.Int64 }

// measure runs a subject for so long, if it does not say how long itself.
func (s *subject) measure(ctx context.Context, length time.Duration) (measurement, error) {
	length = cmp.Or(s.length, length)
	c := s.begin(ctx)
	defer c.end()
	if err := sleep(ctx, cmp.Or(s.warm, length/6)); err != nil {
		return measurement{}, err
	}
	before, err := s.reading(c)
	if err != nil {
		return measurement{}, err
	}
	if err := sleep(ctx, length); err != nil {
		return measurement{}, err
	}
	after, err := s.reading(c)
	if err != nil {
		return measurement{}, err
	}
	c.end()
	m := after.since(before)
	m.p50, m.p99 = c.percentiles()
	return m, s.check(m, c)
}

// errOtherLoad says that the answers were not those that were to be measured.
var errOtherLoad = errors.New("not what was meant")

// check refuses a measurement of something else than was meant.
func (s *subject) check(m measurement, c *crowd) error {
	if err := c.err.Load(); err != nil {
		return fmt.Errorf("%s: %d asks failed: %w", s.name, c.failed.Load(), *err)
	}
	if m.decisions == 0 {
		return fmt.Errorf("%s: no decisions", s.name)
	}
	if s.refuses && m.refused < 0.95 || !s.refuses && m.refused > 0.2 {
		return fmt.Errorf("%s: %w: %.1f %% of the decisions refused", s.name, errOtherLoad, 100*m.refused)
	}
	return nil
}

// reading is the state of all that grows.
type reading struct {
	at                 time.Time
	decisions, refused int64
	costs              []float64
}

func (s *subject) reading(c *crowd) (reading, error) {
	r := reading{at: time.Now(), decisions: c.decisions.Load(), refused: c.refused.Load()}
	for _, cost := range s.costs {
		used, err := cost.read()
		if err != nil {
			return r, fmt.Errorf("%s: %s: %w", s.name, cost.kind, err)
		}
		r.costs = append(r.costs, used)
	}
	return r, nil
}

func (r reading) since(before reading) measurement {
	n := float64(r.decisions - before.decisions)
	m := measurement{
		decisions: n / r.at.Sub(before.at).Seconds(),
		refused:   float64(r.refused-before.refused) / n,
	}
	for i := range r.costs {
		m.costs = append(m.costs, (r.costs[i]-before.costs[i])/n)
	}
	return m
}

// crowd is the callers at work.
type crowd struct {
	counts
	err     atomic.Pointer[error] // the first
	stop    chan struct{}
	stopped sync.Once
	running sync.WaitGroup
	waits   [][]time.Duration // of the asks of each caller
	every   time.Duration     // between two asks of a caller
}

func (s *subject) begin(ctx context.Context) *crowd {
	callers := cmp.Or(s.callers, inFlight)
	c := &crowd{stop: make(chan struct{}), waits: make([][]time.Duration, callers), every: s.every}
	for i := range callers {
		ask := s.newAsk(i)
		first := time.Now().Add(s.every * time.Duration(i) / time.Duration(callers))
		c.running.Go(func() { c.call(ctx, ask, first, &c.waits[i]) })
	}
	return c
}

// call asks until it is told to stop, for the first time at due. An ask that has to begin late, because the one before was
// answered late, has waited since it was due.
func (c *crowd) call(ctx context.Context, ask ask, due time.Time, waits *[]time.Duration) {
	for ; ; due = due.Add(c.every) {
		late := c.every > 0 && time.Until(due) < 0
		if c.every > 0 {
			time.Sleep(time.Until(due))
		}
		select {
		case <-c.stop:
			return
		case <-ctx.Done():
			return
		default:
		}
		asked := time.Now()
		if late {
			asked = due
		}
		decisions, refused, err := ask()
		if err != nil {
			c.failed.Add(1)
			c.err.CompareAndSwap(nil, &err)
			return
		}
		*waits = append(*waits, time.Since(asked))
		c.decisions.Add(int64(decisions))
		c.refused.Add(int64(refused))
	}
}

func (c *crowd) end() {
	c.stopped.Do(func() { close(c.stop) })
	c.running.Wait()
}

// percentiles are how long half of the asks took at most, and 99 of 100.
func (c *crowd) percentiles() (p50, p99 time.Duration) {
	all := slices.Concat(c.waits...)
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100]
}

// repeat lets the callers of a subject ask so many times each.
func (s *subject) repeat(times int) error {
	errs := make([]error, cmp.Or(s.callers, inFlight))
	var running sync.WaitGroup
	for i := range errs {
		ask := s.newAsk(i)
		running.Go(func() {
			for range times {
				if _, _, errs[i] = ask(); errs[i] != nil {
					return
				}
			}
		})
	}
	running.Wait()
	return cmp.Or(errs...)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
