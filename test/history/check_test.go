package history

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// seen is a hit of one unit or more whose client sent and received at those ms.
func seen(sent, received time.Duration, units, quota uint32) Admission {
	return Admission{Sent: sent * ms, Received: received * ms, Units: units, Quota: quota}
}

func times(n int, a Admission) []Admission { return slices.Repeat([]Admission{a}, n) }

func TestHistoriesAreJudgedByWhatIsCertain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		log    []Admission
		broken bool
		units  uint64 // in the fullest window
	}{
		{"nothing passed", nil, false, 0},
		{"the quota at one instant", times(5, seen(0, 0, 1, 5)), false, 5},
		{"one more at one instant", times(6, seen(0, 0, 1, 5)), true, 6},
		{"the quota, then the quota a window later", append(times(5, seen(0, 0, 1, 5)), times(5, seen(100, 100, 1, 5))...), false, 5},
		{"one more a tick before a window has passed", append(times(5, seen(0, 0, 1, 5)), seen(99, 99, 1, 5)), true, 6},
		{"one more that may have come a window later", append(times(5, seen(0, 0, 1, 5)), seen(90, 100, 1, 5)), false, 5},
		{"the first that may have come a window before", append(times(5, seen(0, 30, 1, 5)), seen(110, 115, 1, 5)), false, 5},
		{"one more while all may have", append(times(5, seen(0, 60, 1, 5)), seen(30, 95, 1, 5)), true, 6},
		{"a window in the middle", []Admission{seen(0, 1, 1, 5), seen(80, 85, 3, 5), seen(150, 155, 3, 5)}, true, 6},
		{"costs up to the quota", []Admission{seen(0, 5, 2, 5), seen(10, 15, 3, 5), seen(110, 115, 5, 5)}, false, 5},
		{"costs above it", []Admission{seen(0, 5, 2, 5), seen(10, 15, 4, 5)}, true, 6},
		{"raised: as many as the new quota", append(times(5, seen(0, 5, 1, 5)), times(5, seen(10, 15, 1, 10))...), false, 5},
		{"raised: one more", append(times(5, seen(0, 5, 1, 5)), times(6, seen(10, 15, 1, 10))...), true, 11},
		{"lowered: nothing passes while there are more", append(times(10, seen(0, 5, 1, 10)), seen(10, 15, 1, 5)), true, 11},
		{"lowered: under way at the same time", append(times(9, seen(0, 5, 1, 10)), seen(5, 15, 1, 5)), false, 10},
		{"lowered: room again", append(times(10, seen(0, 5, 1, 10)), times(5, seen(110, 115, 1, 5))...), false, 5},
		{"lowered: some certainly before", append(times(4, seen(0, 5, 1, 10)), seen(8, 30, 6, 10), seen(10, 15, 2, 5)), true, 6},
		{"nothing may pass", []Admission{seen(0, 5, 1, 0)}, true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rand.Shuffle(len(tt.log), func(i, j int) { tt.log[i], tt.log[j] = tt.log[j], tt.log[i] })
			if w := Fullest(tt.log, 100*ms, ms); w.Broken() != tt.broken || w.Units != tt.units {
				t.Errorf("%+v, want %d units, broken %v", w, tt.units, tt.broken)
			}
		})
	}
}

// randomHistory lets an exact log with room for extra more than its quota decide at random instants, which the clients know
// within some ms. The quota changes on the way.
func randomHistory(r *rand.Rand, extra uint32) (log []Admission) {
	exact := NewExact()
	var at time.Duration
	quota, blur := uint32(1+r.IntN(12)), 1+r.Int64N(60)
	for range 1 + r.IntN(80) {
		at += time.Duration(r.Int64N(int64(20 * ms)))
		if r.IntN(15) == 0 {
			quota = uint32(1 + r.IntN(12))
		}
		h := Hit{Bucket: "b", Window: 100 * ms, Quota: quota + extra, Units: uint32(1 + r.IntN(3))}
		if exact.Take(at.Truncate(ms), []Hit{h}) {
			sent, received := at-time.Duration(r.Int64N(blur))*ms, at+time.Duration(r.Int64N(blur))*ms
			log = append(log, Admission{Sent: sent, Received: received, Units: h.Units, Quota: quota})
		}
	}
	return log
}

func TestWhatAnExactLogAdmitsIsNeverBroken(t *testing.T) {
	for seed := range uint64(3000) {
		log := randomHistory(rand.New(rand.NewPCG(seed, 0)), 0)
		if w := Fullest(log, 100*ms, ms); w.Broken() {
			t.Fatalf("seed %d: %+v of %v", seed, w, log)
		}
	}
}

// TestTheSweepFindsWhatTryingAllFinds compares it with all windows that begin with a hit, tried one after the other.
func TestTheSweepFindsWhatTryingAllFinds(t *testing.T) {
	broken := 0
	for seed := range uint64(2000) {
		log := randomHistory(rand.New(rand.NewPCG(seed, 1)), 1)
		w, want := Fullest(log, 100*ms, ms), fullestOfAll(log, 99*ms)
		if w.fuller(want) || want.fuller(w) {
			t.Fatalf("seed %d: %+v, want %+v, of %v", seed, w, want, log)
		}
		if w.Broken() {
			broken++
		}
	}
	if broken < 500 {
		t.Errorf("a log with one place too many is found out in %d of 2000 histories", broken)
	}
}

// fullestOfAll is Fullest as its claim reads: for each window and each of its hits as the newest of those under quota q.
func fullestOfAll(log []Admission, span time.Duration) (fullest Window) {
	for _, first := range log {
		within := func(a Admission) bool { return a.Sent >= first.Sent && a.Received <= first.Sent+span }
		for _, last := range log {
			if !within(last) {
				continue
			}
			w := Window{Quota: uint64(last.Quota)}
			for _, a := range log {
				if within(a) && (a.Quota <= last.Quota || a.Received < last.Sent) {
					w.Units += uint64(a.Units)
				}
			}
			if w.fuller(fullest) {
				fullest = w
			}
		}
	}
	return fullest
}

func TestAnExactLogSpendsAllOrNone(t *testing.T) {
	exact := NewExact()
	wide, narrow := Hit{"wide", time.Second, 10, 1}, Hit{"narrow", 100 * ms, 2, 1}
	passed := 0
	for i := range 40 {
		if exact.Take(time.Duration(i)*20*ms, []Hit{wide, narrow}) {
			passed++
		}
	}
	if passed != 10 {
		t.Errorf("%d passed, want the 10 of the wide limit: 2 in each 100 ms until then", passed)
	}
}
