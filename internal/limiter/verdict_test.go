package limiter

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	hit := func(quota uint32) Hit {
		return Hit{Limit: Limit{Algorithm: SlidingLog, Quota: quota, Window: time.Minute}, Cost: 1}
	}
	shadow := func(h Hit) Hit { h.Shadow = true; return h }
	costly := func(h Hit, cost uint32) Hit { h.Cost = cost; return h }
	left := func(n uint32) Decision { return Decision{Allowed: true, Remaining: n} }
	wait := func(d time.Duration) Decision { return Decision{RetryAfter: d} }
	const s = time.Second

	for _, c := range []struct {
		name      string
		hits      []Hit
		decisions []Decision
		want      Verdict
	}{
		{"no hits are allowed", nil, nil, Verdict{Allowed: true, Speaker: -1}},
		{"shadow hits have no say", []Hit{shadow(hit(5))}, []Decision{wait(s)}, Verdict{Allowed: true, Speaker: -1}},
		{"the least share left speaks", []Hit{hit(10), hit(1000)}, []Decision{left(5), left(400)}, Verdict{Allowed: true, Speaker: 1}},
		{"of equal shares the fewest left", []Hit{hit(1000), hit(10)}, []Decision{left(500), left(5)}, Verdict{Allowed: true, Speaker: 1}},
		{"of equals the first", []Hit{hit(10), hit(10)}, []Decision{left(5), left(5)}, Verdict{Allowed: true, Speaker: 0}},
		{"shares of the largest quotas do not overflow", []Hit{hit(1<<32 - 1), hit(1<<32 - 1)}, []Decision{left(1<<32 - 2), left(1<<32 - 3)}, Verdict{Allowed: true, Speaker: 1}},
		{"a shadow hit never speaks", []Hit{shadow(hit(10)), hit(10)}, []Decision{left(0), left(9)}, Verdict{Allowed: true, Speaker: 1}},
		{"one refusal refuses", []Hit{hit(10), hit(10)}, []Decision{left(0), wait(2 * s)}, Verdict{Speaker: 1, Reason: ReasonLimit, RetryAfter: 2 * s}},
		{"the longest wait speaks (D27)", []Hit{hit(10), hit(10), hit(10)}, []Decision{wait(2 * s), wait(50 * s), wait(50 * s)}, Verdict{Speaker: 1, Reason: ReasonLimit, RetryAfter: 50 * s}},
		{"never is the longest wait", []Hit{hit(10), costly(hit(10), 11), hit(10)}, []Decision{wait(2 * s), wait(Never), wait(50 * s)}, Verdict{Speaker: 1, Reason: ReasonCost, RetryAfter: Never}},
		{"a limit of zero", []Hit{hit(0)}, []Decision{wait(Never)}, Verdict{Speaker: 0, Reason: ReasonLimitZero, RetryAfter: Never}},
	} {
		if got := Judge(c.hits, c.decisions); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestTickForKeepsProductsExactInADouble(t *testing.T) {
	for _, c := range []struct {
		capacity uint32
		window   time.Duration
		want     time.Duration
	}{
		{100, time.Minute, time.Millisecond},
		{1, MinWindow, time.Millisecond},
		{1000, 12 * 24 * time.Hour, time.Millisecond},
		{1000, 13 * 24 * time.Hour, 10 * time.Millisecond}, // more than 2^30 ms
		{1<<32 - 1, time.Minute, time.Millisecond},
		{1<<32 - 1, time.Hour, 10 * time.Millisecond}, // 2^32 · 3.6 million is above 2^51
		{1<<32 - 1, MaxWindow, 100 * time.Second},
	} {
		got := TickFor(c.capacity, c.window, 0)
		if got != c.want {
			t.Errorf("TickFor(%d, %v, 0) = %v, want %v", c.capacity, c.window, got, c.want)
		}
		w := Limit{Window: c.window, Tick: got}.WindowTicks()
		if w > 1<<30 || w*uint64(c.capacity) >= 1<<51 {
			t.Errorf("TickFor(%d, %v, 0): %d ticks are too many", c.capacity, c.window, w)
		}
	}
}
