package limiter

import (
	"testing"
	"time"
)

func tokens(quota uint32, window time.Duration, burst uint32) Limit {
	return Limit{Algorithm: TokenBucket, Quota: quota, Window: window, Burst: burst}
}

func TestSixPerMinuteAreSixAtOnce(t *testing.T) { // D16
	run(t, tokens(6, time.Minute, 6), []row{{hits: 6, pass: 6, want: "A 0 10s"}, {want: "D 10s"}})
	run(t, tokens(6, time.Minute, 1), []row{{hits: 6, pass: 1, want: "D 10s"}, {at: 10 * time.Second, want: "A 0 10s"}})
}

func TestATokenBucketRefillsAtItsRateWhateverTheBurst(t *testing.T) { // D20
	run(t, tokens(1, time.Second, 5), []row{
		{hits: 5, pass: 5},
		{want: "D 1s"},
		{cost: 5, want: "D 5s"},
		{at: 1500 * time.Millisecond, want: "A 0 500ms"},
		{at: 7 * time.Second, look: true, want: "A 5 0s"},
	})
}

func TestATokenBucketLetsItsRateThroughAcrossABoundary(t *testing.T) { // D18
	run(t, tokens(100, time.Minute, 100), []row{
		{at: 59 * time.Second, hits: 100, pass: 100},
		{at: 60100 * time.Millisecond, hits: 100, pass: 1},
	})
}

func TestALargeRateIsHeld(t *testing.T) { // D23
	l, b, passed := tokens(6000, time.Second, 6000), newBucket(TokenBucket), 0
	for i := range int64(3 * 18000) {
		now := aligned + i/18
		if takeOne(b, l, 1, now).Allowed {
			passed++
		}
		if b.held().ends <= now {
			t.Fatalf("no bucket after %d hits", i)
		}
	}
	if want := 4 * 6000; passed < want*99/100 || passed > want*101/100 {
		t.Errorf("%d passed in 3 s, want about %d", passed, want)
	}
}

func TestMissingTokensStayMissingWhenTheNumbersChange(t *testing.T) { // D92
	l, slower := tokens(10, time.Minute, 10), tokens(10, 2*time.Minute, 10)
	small, large := tokens(10, time.Minute, 4), tokens(10, time.Minute, 20)
	run(t, l, []row{
		{at: 0, cost: 8, want: "A 2 6s"},
		{at: 0, limit: &slower, look: true, want: "A 2 12s"},
		{at: 12 * time.Second, look: true, want: "A 3 12s"},
		{at: 12 * time.Second, limit: &large, look: true, want: "A 14 6s"},
		{at: 12 * time.Second, limit: &small, want: "A 1 6s"},
	})
	run(t, l, []row{
		{at: 0, cost: 10, want: "A 0 6s"},
		{at: 0, limit: &small, want: "D 6s"}, // not 42 s: nobody waits for more than a full bucket
		{at: 6 * time.Second, want: "A 0 6s"},
	})
}
