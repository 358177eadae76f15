package limiter

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// walk takes a bucket through hits of all kinds, changes of its limit and steps of the clock, and holds what every decision
// promises against what comes of it.
type walk struct {
	t      *rapid.T
	limits []Limit // that reloads and overrides choose from; one tick for all
	limit  Limit
	ban    time.Duration
	bucket bucket
	now    int64
	newest int64 // the latest instant so far
	spent  bool  // at this very instant
}

// newWalk draws limits over the whole range that the configuration accepts, and calendars.
func newWalk(t *rapid.T) *walk {
	a := rapid.SampledFrom(allAlgorithms).Draw(t, "algorithm")
	w := &walk{t: t, now: aligned, bucket: newBucket(a)}
	var limits []Limit
	tick := time.Duration(0)
	for range rapid.IntRange(1, 4).Draw(t, "limits") {
		l := Limit{Algorithm: a, Quota: rapid.Uint32Range(1, 70).Draw(t, "quota"), Tick: time.Second}
		if a == CalendarWindow {
			zone := rapid.SampledFrom(calendarZones).Draw(t, "zone")
			l.Calendar = Calendar{Period: Period(rapid.IntRange(1, 4).Draw(t, "period")), Zone: zone}
			l.Window = l.Calendar.Longest()
		} else {
			l = drawLimit(t, a)
		}
		tick = max(tick, l.Tick)
		limits = append(limits, l)
	}
	for _, l := range limits {
		l.Tick = tick
		if float64(l.Burst)*float64(l.window()) <= float64(MaxBurstLifetime)*float64(l.Quota) {
			w.limits = append(w.limits, l)
		}
	}
	w.limit = w.limits[0]
	if rapid.IntRange(0, 3).Draw(t, "bans") == 0 {
		w.ban = time.Duration(rapid.Int64Range(1, 2*w.limit.Window.Milliseconds()).Draw(t, "ban")) * time.Millisecond
		w.ban = min(w.ban, MaxBan)
	}
	return w
}

// pause lets time pass, or steps the clock back, and now and then changes the limit.
func (w *walk) pause() {
	if rapid.IntRange(0, 9).Draw(w.t, "change") == 0 {
		w.limit = rapid.SampledFrom(w.limits).Draw(w.t, "limit")
	}
	if rapid.IntRange(0, 19).Draw(w.t, "back") == 0 {
		w.stepBack(rapid.Int64Range(0, 3*w.limit.Window.Milliseconds()).Draw(w.t, "ms"))
	} else {
		w.now += drawPause(w.t, w.limit)
	}
	w.newest, w.spent = max(w.newest, w.now), false
	w.bucket = kept(w.bucket, w.limit.Algorithm, w.now)
}

// stepBack checks that a step back takes no unit that was left when the last hit was spent. Only a sliding counter, which
// does not know when that was, forgets how the last window has faded since.
func (w *walk) stepBack(ms int64) {
	before := w.left()
	w.now -= ms
	if after := w.left(); after < before && w.spent && w.limit.Algorithm != SlidingCounter {
		w.t.Fatalf("a step of %d ms back leaves %d units of %d", ms, after, before)
	}
}

func (w *walk) left() uint32 { return w.bucket.look(w.limit.law(), 0, w.now).Remaining }

// take draws a hit and takes it, in a request that may be refused by another rule. It returns what the bucket was kept for
// before, too.
func (w *walk) take() (h Hit, held bool, d Decision, ends int64) {
	h = Hit{Limit: w.limit, Cost: drawCost(w.t, w.limit), Ban: w.ban}
	h.Shadow = rapid.IntRange(0, 7).Draw(w.t, "shadow") == 0
	h.CountDenied = rapid.IntRange(0, 5).Draw(w.t, "counted") == 0
	hits, buckets := []Hit{h}, []bucket{w.bucket}
	if held = rapid.IntRange(0, 5).Draw(w.t, "held") == 0; held {
		hits, buckets = append(hits, Hit{Limit: Limit{Algorithm: SlidingLog, Window: time.Second}, Cost: 1}), append(buckets, nil)
	}
	ends = w.bucket.held().ends
	decisions := make([]Decision, len(hits))
	take(hits, buckets, w.now, decisions)
	if held = held && !h.Shadow; decisions[0].Allowed && h.Cost > 0 && !held {
		w.spent = true
	}
	return h, held, decisions[0], ends
}

// longest bounds the waits of a hit: those of DESIGN §5, and a backward step of the clock of at most one window.
func (w *walk) longest() time.Duration {
	skew := time.Duration(w.newest-w.now) * time.Millisecond
	return w.limit.Lifetime() + min(skew.Truncate(w.limit.tick())+w.limit.tick(), w.limit.window())
}

// passes reports whether the hit would pass at that instant if nothing else came before.
func (w *walk) passes(h Hit, at int64) bool {
	return (h.Ban == 0 || w.bucket.held().ban <= at) && w.bucket.look(h.Limit.law(), h.Cost, at).Allowed
}

// checkBounds checks a decision's numbers, and for how long the bucket is kept.
func (w *walk) checkBounds(h Hit, held bool, d Decision, before int64) {
	never := h.Limit.NeverPasses(h.Cost)
	longest, e := w.longest(), w.bucket.held()
	left := time.Duration(e.ends-w.now) * time.Millisecond
	latest := max(longest, h.Ban) + time.Duration(h.Limit.law().slack())*time.Millisecond
	switch {
	case d.Remaining > h.Limit.Capacity(), !d.Allowed && d.Remaining > 0,
		(d.RetryAfter == Never) != never, never && d.Allowed,
		d.ResetAfter < 0, d.ResetAfter > longest, !d.Allowed && d.ResetAfter != 0,
		!never && (d.RetryAfter < 0 || d.RetryAfter > max(longest, h.Ban)),
		!never && !d.Allowed && d.RetryAfter == 0,
		d.Allowed && d.RetryAfter != 0 && !(held && h.CountDenied && h.Cost > 0):
		w.t.Fatalf("cost %d, bound %v: %+v", h.Cost, longest, d)
	case !never && left < d.RetryAfter && d.RetryAfter > 0,
		e.ends != before && left > latest,
		d.Allowed && !held && h.Cost > 0 && e.ends < w.bucket.full(h.Limit.law(), w.now):
		w.t.Fatalf("the bucket is kept for %v more, %v at most, after %+v", left, latest, d)
	}
}

// TestNumbersAndLeasesStayWithinTheirBoundsWhateverHappens: bans, counted refusals, calendars, changed limits and clocks that
// step back. A lease is what PTTL shows in Redis, which the parity test compares. D24, D69
func TestNumbersAndLeasesStayWithinTheirBoundsWhateverHappens(t *testing.T) {
	steps := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWalk(t)
		for range rapid.IntRange(1, 60).Draw(t, "hits") {
			w.pause()
			w.checkBounds(w.take())
			steps++
		}
	})
	t.Attr("figures", fmt.Sprint(steps, " steps"))
}

// TestAWaitThatIsObeyedEndsAndNoneIsTooLongWhateverHappenedBefore: the hit passes after its RetryAfter and not a tick earlier,
// and what else is refused meanwhile moves that by nothing. D25, D69, D92
func TestAWaitThatIsObeyedEndsAndNoneIsTooLongWhateverHappenedBefore(t *testing.T) {
	steps, waits := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWalk(t)
		for range rapid.IntRange(1, 60).Draw(t, "hits") {
			w.pause()
			steps++
			h, _, d, _ := w.take()
			// A bucket that is banned and asked by a clock that is behind all it holds is told to wait for the ban alone; but what
			// it holds may count again by then.
			if d.RetryAfter > 0 && (w.ban == 0 || w.now == w.newest) {
				waits++
				w.obey(h, d.RetryAfter)
			}
		}
	})
	t.Attr("figures", fmt.Sprintf("%d steps, %d waits obeyed", steps, waits))
}

// obey polls before the wait is over, sees that it ends when it was said to, and lets the time pass.
func (w *walk) obey(h Hit, wait time.Duration) {
	begin, end := w.now, w.now+wait.Milliseconds()
	unit := h.Limit.tick().Milliseconds()
	if h.Limit.Algorithm == CalendarWindow {
		unit = 1
	}
	check := func(when string) {
		if !w.passes(h, end) {
			w.t.Fatalf("%s: cost %d is promised %v after %d, but then refused", when, h.Cost, wait, begin)
		}
		if end-unit > w.now && w.passes(h, end-unit) {
			w.t.Fatalf("%s: cost %d is promised %v after %d, but passes a tick earlier", when, h.Cost, wait, begin)
		}
	}
	check("at once")
	// A refusal after a ban begins another one, but for a shadow hit; it is counted if the rule says so.
	poll := h
	poll.Shadow, poll.CountDenied = h.Shadow || h.Ban > 0, false
	for range rapid.IntRange(0, 3).Draw(w.t, "polls") {
		w.now += rapid.Int64Range(0, end-w.now).Draw(w.t, "poll")
		if w.passes(h, w.now) {
			break
		}
		decisions := make([]Decision, 1)
		take([]Hit{poll}, []bucket{w.bucket}, w.now, decisions)
		if again := w.now + decisions[0].RetryAfter.Milliseconds(); again >= end+unit || again <= end-unit {
			w.t.Fatalf("cost %d is promised for %d, and at %d for %d", h.Cost, end, w.now, again)
		}
		check("after a poll")
	}
	w.now, w.newest, w.spent = end, max(w.newest, end), false
}
