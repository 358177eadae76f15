package limiter

import (
	"testing"
	"time"
)

func sliding(quota uint32, window time.Duration) Limit {
	return Limit{Algorithm: SlidingLog, Quota: quota, Window: window}
}

func TestHitsOfOneMillisecondAllCount(t *testing.T) { // D4
	run(t, sliding(5, time.Minute), []row{{hits: 200, pass: 5}, {at: 59 * time.Second, want: "D 1s"}})
	run(t, sliding(9, time.Minute), []row{{cost: 3, hits: 10, pass: 3, want: "D 1m0s"}})
}

func TestRefusedHitsDoNotKeepAClientOut(t *testing.T) { // D5
	b, l := newBucket(SlidingLog), sliding(5, time.Second)
	for second := range int64(10) {
		passed := 0
		for i := range int64(10) {
			if takeOne(b, l, 1, aligned+second*1000+i*100).Allowed {
				passed++
			}
		}
		if passed != 5 {
			t.Errorf("second %d: %d of 10 passed, want 5", second, passed)
		}
	}
}

func TestWhatLeftTheWindowDoesNotCount(t *testing.T) { // D9
	run(t, sliding(1, 10*time.Second), []row{
		{at: 0, want: "A 0 10s"},
		{at: 9999 * time.Millisecond, want: "D 1ms"},
		{at: 10001 * time.Millisecond, want: "A 0 10s"},
	})
}

func TestAWindowThatEndsFreesThePlaceOfItsOldestHit(t *testing.T) { // D19
	run(t, sliding(2, time.Minute), []row{
		{at: 0, want: "A 1 1m0s"},
		{at: 30 * time.Second, want: "A 0 30s"},
		{at: 40 * time.Second, want: "D 20s"},
		{at: 60 * time.Second, want: "A 0 30s"},
	})
}

func TestALogWaitsForAsManyPlacesAsTheCostNeeds(t *testing.T) {
	run(t, sliding(4, time.Minute), []row{
		{at: 0, cost: 2},
		{at: 10 * time.Second},
		{at: 20 * time.Second, want: "A 0 40s"},
		{at: 30 * time.Second, cost: 2, want: "D 30s"},
		{at: 30 * time.Second, cost: 3, want: "D 40s"},
		{at: 30 * time.Second, cost: 4, want: "D 50s"},
		{at: 30 * time.Second, look: true, want: "D 30s"},
	})
}

func TestALogLetsNothingThroughAcrossABoundary(t *testing.T) { // D18
	for _, a := range []Algorithm{SlidingLog, GroupedLog} {
		run(t, Limit{Algorithm: a, Quota: 100, Window: time.Minute}, []row{
			{at: 59 * time.Second, hits: 100, pass: 100},
			{at: 60100 * time.Millisecond, hits: 100, pass: 0, want: "D 58.9s"},
		})
	}
}

func TestALogCountsWhatLiesInAChangedWindow(t *testing.T) { // D92
	for _, a := range []Algorithm{SlidingLog, GroupedLog} {
		long := Limit{Algorithm: a, Quota: 10, Window: time.Minute}
		short := Limit{Algorithm: a, Quota: 10, Window: 10 * time.Second}
		run(t, long, []row{
			{at: 0, hits: 10, pass: 10},
			{at: 9 * time.Second, limit: &short, want: "D 1s"},
			{at: 10 * time.Second, limit: &short, want: "A 9 10s"},
			{at: 11 * time.Second, limit: &long, want: "A 8 59s"},
		})
	}
}

func TestTheRingFollowsTheLiveHits(t *testing.T) {
	s, l := new(slidingLog), sliding(1000, time.Minute)
	places := func(want int) {
		t.Helper()
		if len(s.ring) != want {
			t.Errorf("%d units live in a ring of %d, want %d", s.n, len(s.ring), want)
		}
	}
	takeOne(s, l, 1, aligned)
	places(8)
	for range 9 {
		takeOne(s, l, 1, aligned)
	}
	places(16)
	takeOne(s, l, 990, aligned)
	places(1000) // not beyond the quota
	takeOne(s, l, 1, aligned+60_000)
	places(8)
}
