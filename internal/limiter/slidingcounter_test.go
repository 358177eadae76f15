package limiter

import (
	"testing"
	"time"
)

func counter(quota uint32, window time.Duration) Limit {
	return Limit{Algorithm: SlidingCounter, Quota: quota, Window: window}
}

func TestTheLastWindowWeighsAsMuchAsItIsCovered(t *testing.T) {
	run(t, counter(10, 10*time.Second), []row{
		{at: 0, hits: 10, pass: 10, want: "A 0 11s"},
		{at: 9 * time.Second, want: "D 2s"},
		{at: 10999 * time.Millisecond, want: "D 1ms"},
		{at: 11 * time.Second, want: "A 0 1s"},
		{at: 15 * time.Second, cost: 4, want: "A 0 1s"},
		{at: 15 * time.Second, cost: 2, want: "D 2s"},
		{at: 15 * time.Second, cost: 6, want: "D 7s"},
		{at: 22 * time.Second, cost: 6, want: "A 0 2s"},
		{at: 40 * time.Second, look: true, want: "A 10 0s"},
	})
}

func TestACounterBarelyLetsAnythingThroughAcrossABoundary(t *testing.T) { // D18
	run(t, counter(100, time.Minute), []row{
		{at: 59 * time.Second, hits: 100, pass: 100},
		{at: 60100 * time.Millisecond, hits: 100, pass: 0, want: "D 500ms"},
	})
}

func TestACounterCarriesItsEstimateIntoAChangedWindow(t *testing.T) { // D92
	long, short := counter(10, time.Minute), counter(10, 10*time.Second)
	run(t, long, []row{
		{at: 0, hits: 10, pass: 10},
		{at: 84 * time.Second, look: true, want: "A 4 6s"},
		{at: 84 * time.Second, limit: &short, cost: 4, want: "A 0 7s"},
		{at: 91 * time.Second, want: "A 0 1s"},
	})
	// Nobody is told a wait that a second look at the old count would make untrue.
	run(t, long, []row{
		{at: 0, hits: 10, pass: 10},
		{at: 5 * time.Second, limit: &short, want: "D 6s"},
		{at: 10 * time.Second, want: "D 1s"},
		{at: 11 * time.Second, want: "A 0 1s"},
	})
}
