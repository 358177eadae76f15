package limiter

import (
	"fmt"
	"testing"
	"time"
)

// aligned is an instant, in ms, at which a window of every length in these tests begins.
var aligned = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// row is what happens to a bucket at one instant. The rows of a test share one bucket and are in the order of time.
type row struct {
	at    time.Duration // since aligned
	limit *Limit        // from here on
	hits  int           // equal hits, one after the other; 0 is 1
	cost  uint32        // of each; 0 is 1
	look  bool          // cost 0
	pass  int           // how many pass, of more than one
	want  string        // the last decision, as brief writes it
}

// brief writes a decision: remaining and ResetAfter of an allowed hit, RetryAfter of a refused one.
func brief(d Decision) string {
	switch {
	case d.Allowed:
		return fmt.Sprintf("A %d %v", d.Remaining, d.ResetAfter)
	case d.RetryAfter == Never:
		return "D never"
	}
	return fmt.Sprintf("D %v", d.RetryAfter)
}

// takeOne takes one hit from a bucket.
func takeOne(b bucket, l Limit, cost uint32, now int64) Decision {
	decisions := make([]Decision, 1)
	take([]Hit{{Limit: l, Cost: cost}}, []bucket{b}, now, decisions)
	return decisions[0]
}

func run(t *testing.T, l Limit, rows []row) {
	t.Helper()
	b := newBucket(l.Algorithm)
	for i, r := range rows {
		if r.limit != nil {
			l = *r.limit
		}
		cost := max(r.cost, 1)
		if r.look {
			cost = 0
		}
		var d Decision
		passed := 0
		for range max(r.hits, 1) {
			if d = takeOne(b, l, cost, aligned+r.at.Milliseconds()); d.Allowed {
				passed++
			}
		}
		if r.hits > 1 && passed != r.pass {
			t.Fatalf("row %d, at %v: %d of %d hits passed, want %d", i, r.at, passed, r.hits, r.pass)
		}
		if got := brief(d); r.want != "" && got != r.want {
			t.Fatalf("row %d, at %v: %s, want %s", i, r.at, got, r.want)
		}
	}
}

// every returns the limit under each algorithm; a token bucket's burst is the quota.
func every(quota uint32, window time.Duration) []Limit {
	var limits []Limit
	for i := range Algorithms {
		l := Limit{Algorithm: Algorithm(i + 1), Quota: quota, Window: window, Tick: TickFor(quota, window, 0)}
		if l.Algorithm == TokenBucket {
			l.Burst = quota
		}
		limits = append(limits, l)
	}
	return limits
}

func TestALimitOfFivePassesFive(t *testing.T) { // D14
	for _, l := range every(5, time.Minute) {
		b := newBucket(l.Algorithm)
		for i := range 7 {
			d := takeOne(b, l, 1, aligned+int64(i))
			if pass := i < 5; d.Allowed != pass || pass && d.Remaining != uint32(4-i) {
				t.Errorf("%v, hit %d: %s", l.Algorithm, i+1, brief(d))
			}
		}
	}
}

func TestAQuotaOfZeroNeverPasses(t *testing.T) { // D117
	for _, l := range every(0, time.Minute) {
		run(t, l, []row{{want: "D never"}, {look: true, want: "D never"}, {at: time.Hour, want: "D never"}})
	}
}

func TestACostAboveTheCapacityNeverPasses(t *testing.T) { // D117
	for _, l := range every(5, time.Minute) {
		run(t, l, []row{{cost: 6, want: "D never"}, {cost: 5, hits: 2, pass: 1}})
	}
}

func TestAWindowOfAQuarterSecondWorks(t *testing.T) { // D71
	for _, l := range every(1, 250*time.Millisecond) {
		if l.Algorithm == SlidingCounter {
			continue // what passed in one window is in the way for the whole of the next
		}
		run(t, l, []row{
			{at: 0, want: "A 0 250ms"},
			{at: 200 * time.Millisecond, want: "D 50ms"},
			{at: 251 * time.Millisecond, hits: 2, pass: 1},
		})
	}
}

func TestARaisedQuotaActsOnTheNextHit(t *testing.T) { // D92
	for _, l := range every(10, time.Minute) {
		raised, lowered := l, l
		raised.Quota, lowered.Quota = 20, 5
		if l.Algorithm == TokenBucket {
			raised.Burst, lowered.Burst = 20, 5
		}
		t.Run(l.Algorithm.String(), func(t *testing.T) {
			b := newBucket(l.Algorithm)
			for range 10 {
				takeOne(b, l, 1, aligned)
			}
			if d := takeOne(b, raised, 1, aligned); !d.Allowed || d.Remaining != 9 {
				t.Errorf("after 10 of 10, then a quota of 20: %s", brief(d))
			}
			if d := takeOne(b, lowered, 1, aligned); d.Allowed {
				t.Errorf("after 11 of 20, then a quota of 5: %s", brief(d))
			}
		})
	}
}

func TestABucketOutlivesTheWaitOfALongerWindow(t *testing.T) {
	for _, l := range every(1, time.Second) {
		longer := l
		longer.Window = time.Hour
		b := newBucket(l.Algorithm)
		takeOne(b, l, 1, aligned)
		d := takeOne(b, longer, 1, aligned+500)
		if retry := aligned + 500 + d.RetryAfter.Milliseconds(); d.Allowed || b.held().ends < retry {
			t.Errorf("%v: kept until %d, but a refused client was told to come at %d", l.Algorithm, b.held().ends, retry)
		}
	}
}

func TestARefusalDoesNotProlongABucketThatLivesLongEnough(t *testing.T) {
	for _, l := range every(1, time.Minute) {
		b := newBucket(l.Algorithm)
		takeOne(b, l, 1, aligned)
		before := b.held().ends
		takeOne(b, l, 1, aligned+30_000)
		if b.held().ends != before {
			t.Errorf("%v: a refusal moved the end of the bucket from %d to %d", l.Algorithm, before, b.held().ends)
		}
	}
}

func TestAClockThatStepsBackALittleIsClampedAndALotStartsAfresh(t *testing.T) {
	for _, l := range every(2, time.Minute) {
		t.Run(l.Algorithm.String(), func(t *testing.T) {
			b := newBucket(l.Algorithm)
			takeOne(b, l, 2, aligned+90_000)
			d := takeOne(b, l, 1, aligned+59_000)
			if d.Allowed || d.RetryAfter > l.Lifetime()+l.Window {
				t.Errorf("31 s back: %s", brief(d))
			}
			if retry := b.look(l.law(), 1, aligned+59_000+d.RetryAfter.Milliseconds()); !retry.Allowed {
				t.Errorf("%v after that: %s", d.RetryAfter, brief(retry))
			}
			if d := takeOne(b, l, 1, aligned-60_000); !d.Allowed || d.Remaining != 1 {
				t.Errorf("150 s back: %s", brief(d))
			}
		})
	}
}

func TestARefusedRequestReportsWhatIsLeftUnspent(t *testing.T) {
	for _, l := range every(10, time.Minute) {
		full := newBucket(SlidingLog)
		one := Limit{Algorithm: SlidingLog, Quota: 1, Window: time.Minute}
		takeOne(full, one, 1, aligned)
		b := newBucket(l.Algorithm)
		takeOne(b, l, 4, aligned)
		left := b.look(l.law(), 0, aligned+1000)
		hits := []Hit{{Limit: l, Cost: 3}, {Limit: one, Cost: 1}}
		decisions := make([]Decision, 2)
		take(hits, []bucket{b, full}, aligned+1000, decisions)
		if decisions[0] != left || left.Remaining != 6 {
			t.Errorf("%v: the hit that would have passed reports %s, the bucket holds %s", l.Algorithm, brief(decisions[0]), brief(left))
		}
		if after := b.look(l.law(), 0, aligned+1000); after != left {
			t.Errorf("%v: the refused request was spent: %s", l.Algorithm, brief(after))
		}
	}
}
