package limiter

import (
	"testing"
	"time"
)

func fixed(quota uint32, window time.Duration) Limit {
	return Limit{Algorithm: FixedWindow, Quota: quota, Window: window}
}

func TestAFixedWindowEndsUnderSteadyTraffic(t *testing.T) { // D6
	run(t, fixed(3, 10*time.Second), []row{
		{at: 0, want: "A 2 10s"},
		{at: 4 * time.Second, want: "A 1 6s"},
		{at: 8 * time.Second, want: "A 0 2s"},
		{at: 9 * time.Second, want: "D 1s"},
		{at: 12 * time.Second, want: "A 2 8s"},
		{at: 60 * time.Second, want: "A 2 10s"},
	})
}

func TestAWindowInheritsNothingFromTheLast(t *testing.T) { // D8
	run(t, fixed(5, time.Minute), []row{
		{at: 58700 * time.Millisecond, hits: 5, pass: 5},
		{at: 60100 * time.Millisecond, want: "A 4 59.9s"},
	})
}

func TestAFixedWindowLetsTwiceItsQuotaThroughAcrossABoundary(t *testing.T) { // D18
	run(t, fixed(100, time.Minute), []row{
		{at: 59 * time.Second, hits: 100, pass: 100},
		{at: 60100 * time.Millisecond, hits: 100, pass: 100},
	})
}

func TestRefusedHitsAreNotCounted(t *testing.T) {
	larger := fixed(4, time.Minute)
	run(t, fixed(2, time.Minute), []row{{hits: 9, pass: 2, want: "D 1m0s"}, {limit: &larger, want: "A 1 1m0s"}})
}

func TestACountIsCarriedIntoAChangedWindowIfItsOwnHasNotEnded(t *testing.T) { // D92
	long, short := fixed(10, time.Minute), fixed(10, 10*time.Second)
	run(t, long, []row{
		{at: 0, hits: 10, pass: 10},
		{at: 25 * time.Second, limit: &short, want: "D 5s"},
		{at: 30 * time.Second, want: "A 9 10s"},
		{at: 31 * time.Second, limit: &long, want: "A 8 29s"},
		{at: 61 * time.Second, limit: &short, want: "A 9 9s"},
	})
}
