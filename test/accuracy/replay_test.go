package main

import (
	"slices"
	"testing"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// short is enough for what must hold on all traffic.
var short = effort{requests: 20_000, windows: 100, tries: 200, people: 100}

func TestAWindowHoldsWhatCameWithinIt(t *testing.T) {
	var s sliding
	for _, step := range []struct{ at, want int64 }{
		{0, 0}, {1, 1}, {1, 2}, {windowMS - 1, 3}, {windowMS, 3}, {windowMS + 1, 2}, {3 * windowMS, 0},
	} {
		if got := s.count(step.at); got != step.want {
			t.Errorf("at %d ms the window holds %d, want %d", step.at, got, step.want)
		}
		s.add(step.at)
	}
}

// everyOutcome shows each trace, with several quotas, as each algorithm decided it.
func everyOutcome(t *testing.T, check func(t *testing.T, a limiter.Algorithm, quota int64, o outcome)) {
	for _, quota := range []int{1, 10, 33, 100, 1000} {
		for _, traffic := range traces {
			for i, o := range compare(quota, traffic.draw(quota, short.windowsFor(quota))) {
				if check(t, algorithms[i], int64(quota), o); t.Failed() {
					t.Fatalf("%v of %d a minute on %q: %+v", algorithms[i], quota, traffic.name, o)
				}
			}
		}
	}
}

// D18
func TestTheAlgorithmsAreWrongOnlyAsTheyPromise(t *testing.T) {
	everyOutcome(t, func(t *testing.T, a limiter.Algorithm, quota int64, o outcome) {
		if o.Requests == 0 || o.Admitted == 0 {
			t.Error("nothing was asked, or nothing admitted")
		}
		free, peak := int64(0), 2*quota
		switch a {
		case limiter.SlidingLog:
			peak = quota
		case limiter.GroupedLog:
			free, peak = (quota+31)/32-1, quota
		case limiter.SlidingCounter:
			free = quota
		}
		if o.MostFree > free || o.Peak > peak || (o.WronglyAdmitted > 0) != (o.Peak > quota) || (o.WronglyRefused > 0) != (o.MostFree > 0) {
			t.Errorf("want at most %d places free at a refusal and a peak of at most %d", free, peak)
		}
	})
}

// D18
func TestBurstsAroundABoundary(t *testing.T) {
	const quota = 100
	for _, test := range []struct {
		traffic   string
		algorithm limiter.Algorithm
		peak      int64
		admitted  int64
	}{
		{boundaryBurst, limiter.SlidingLog, quota, quota},
		{boundaryBurst, limiter.SlidingCounter, quota, quota},
		{boundaryBurst, limiter.FixedWindow, 2 * quota, 2 * quota},
		{burstBefore, limiter.SlidingLog, quota, 2 * quota},
		{burstBefore, limiter.GroupedLog, quota, 2 * quota},
		{burstBefore, limiter.SlidingCounter, 2*quota - 1, 3*quota - 2},
		{burstBefore, limiter.TokenBucket, 2*quota - 1, 3*quota - 1},
		{burstBefore, limiter.FixedWindow, 2 * quota, 3 * quota},
		{burstAfter, limiter.SlidingLog, quota, 2 * quota},
		{burstAfter, limiter.SlidingCounter, quota, 2*quota - 1},
	} {
		i := slices.IndexFunc(traces, func(tr trace) bool { return tr.name == test.traffic })
		o := replay(limitOf(test.algorithm, quota), traces[i].draw(quota, 1))
		if o.Peak != test.peak || o.Admitted != test.admitted {
			t.Errorf("%s, %v: a peak of %d and %d admitted, want %d and %d", test.traffic, test.algorithm, o.Peak, o.Admitted, test.peak, test.admitted)
		}
	}
}

func TestAnAdversaryFindsTwiceTheLimitWhereItCanBeHadAndNeverMoreThanIsPromised(t *testing.T) {
	const quota = 50
	for a, want := range map[limiter.Algorithm]worst{
		limiter.SlidingLog:     {peak: quota},
		limiter.GroupedLog:     {peak: quota, mostFree: 1},
		limiter.SlidingCounter: {peak: 2*quota - 1, mostFree: quota},
		limiter.TokenBucket:    {peak: 2*quota - 1},
		limiter.FixedWindow:    {peak: 2 * quota},
	} {
		got := attack(a, quota, short.tries)
		if got.peak > want.peak || 10*got.peak < 9*want.peak || got.mostFree > want.mostFree || got.least > 1 || got.most < 1 {
			t.Errorf("%v: %+v, want a peak near %d and at most %d places free", a, got, want.peak, want.mostFree)
		}
	}
}
