package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

var ratelimitd string // the binary under test

func TestMain(m *testing.M) { os.Exit(harness.Main(m, &ratelimitd)) }

const daemonCount = 4

// run is four daemons, their clients, and what the clients saw.
type run struct {
	t       *testing.T
	daemons []*harness.Daemon
	store   []string // the store part of each daemon's configuration
	began   time.Time
	scales  []scale
	sending atomic.Value // []int: the clients that send

	mu        sync.Mutex
	decisions []decision
}

// newRun starts four daemons on that Redis. The key prefix of the i-th is prefix(i).
func newRun(t *testing.T, url string, prefix func(i int) string) *run {
	t.Helper()
	r := &run{t: t, began: time.Now().Round(0), scales: []scale{{factor: 2}}}
	r.sending.Store(everyone)
	for i := range daemonCount {
		r.store = append(r.store, fmt.Sprintf("store: {redis: {url: %q, timeout: 500ms, key_prefix: %s}}\n", url, prefix(i)))
		r.daemons = append(r.daemons, harness.Serve(t, ratelimitd, "", r.store[i]+rules(r.scales[0].factor)))
	}
	return r
}

// now is since the run began, on the wall clock, by which Redis decides: Round strips the monotonic one.
func (r *run) now() time.Duration { return time.Now().Round(0).Sub(r.began) }

// hammer lets the clients send requests as fast as they are answered while meanwhile runs.
func (r *run) hammer(meanwhile func()) {
	ctx, stop := context.WithCancel(r.t.Context())
	var running sync.WaitGroup
	for _, d := range r.daemons {
		conn := dial(r.t, d.Addr)
		for range 4 {
			running.Go(func() {
				var mine []decision
				for ctx.Err() == nil {
					clients := r.sending.Load().([]int)
					mine = append(mine, r.ask(conn, requestOf(clients[rand.IntN(len(clients))])))
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				r.decisions = append(r.decisions, mine...)
			})
		}
	}
	meanwhile()
	stop()
	running.Wait()
}

// oneByOne lets each client send alone for a while, so that its own limit is the one that holds it back.
func (r *run) oneByOne() {
	for _, client := range everyone {
		r.sending.Store([]int{client})
		time.Sleep(settled / time.Duration(len(everyone)))
	}
	r.sending.Store(everyone)
}

// scale is by how much the limits were multiplied, in halves, and when that was put in force: the first daemon may have had it
// from begin on, all have it from end on.
type scale struct {
	factor     uint32
	begin, end time.Duration
}

// reload changes the limits of all daemons, one after the other, to others than before.
func (r *run) reload() {
	last := r.scales[len(r.scales)-1].factor
	next := scale{factor: []uint32{1, 2, 4}[rand.IntN(3)], begin: r.now()}
	if next.factor == last {
		next.factor = 5 - max(last, 2)
	}
	for i, d := range r.daemons {
		d.Reload(r.store[i] + rules(next.factor))
	}
	next.end = r.now()
	r.scales = append(r.scales, next)
}

// largest is the largest factor that may have been in force at some time between two instants.
func (r *run) largest(from, to time.Duration) (factor uint32) {
	for i, s := range r.scales {
		over := i+1 < len(r.scales) && r.scales[i+1].end < from
		if !over && s.begin <= to {
			factor = max(factor, s.factor)
		}
	}
	return factor
}

// hits is what a decision may have spent, under the largest limits that may have been in force.
func (r *run) hits(d decision) (enforced []Hit, trial Hit) {
	return d.hits(r.largest(d.sent, d.received))
}

// admissions are what passed, by bucket, and the window of each bucket.
func (r *run) admissions() (logs map[string][]Admission, windows map[string]time.Duration) {
	logs, windows = make(map[string][]Admission), make(map[string]time.Duration)
	for _, d := range r.decisions {
		if d.answer != allowed {
			continue
		}
		passed, trial := r.hits(d)
		if d.trial {
			passed = append(passed, trial)
		}
		for _, h := range passed {
			logs[h.Bucket] = append(logs[h.Bucket], Admission{Sent: d.sent, Received: d.received, Units: h.Units, Quota: h.Quota})
			windows[h.Bucket] = h.Window
		}
	}
	return logs, windows
}

// fullest is the fullest window of each bucket.
func (r *run) fullest() map[string]Window {
	logs, windows := r.admissions()
	all := make(map[string]Window)
	for bucket, log := range logs {
		all[bucket] = Fullest(log, windows[bucket], time.Millisecond)
	}
	return all
}

// settled is for how long the store must have answered until what nobody knows of is out of every window.
const settled = groupWindow

// share compares the units that passed with what an exact log would have let pass of the same requests, while the store
// answers.
func (r *run) share() float64 {
	slices.SortFunc(r.decisions, func(a, b decision) int { return cmp.Compare(a.received, b.received) })
	outages := r.outages()
	exact, until := NewExact(), time.Duration(0)
	var passed, possible float64
	for _, d := range r.decisions {
		if d.answer == unavailable {
			continue
		}
		for len(outages) > 0 && outages[0].begin <= d.received {
			until = max(until, outages[0].end)
			outages = outages[1:]
		}
		enforced, _ := r.hits(d)
		wouldPass := exact.Take(d.received, enforced)
		if d.received < until {
			continue
		}
		if d.answer == allowed {
			passed += float64(d.cost)
		}
		if wouldPass {
			possible += float64(d.cost)
		}
	}
	return passed / possible
}

// outage is a time in which the store is not known to answer: what it has refused before is refused all the same.
type outage struct{ begin, end time.Duration }

// outages are those of the run, in the order in which they began.
func (r *run) outages() (all []outage) {
	for _, d := range r.decisions {
		if d.answer == unavailable {
			all = append(all, outage{d.sent, d.received + settled})
		}
	}
	slices.SortFunc(all, func(a, b outage) int { return cmp.Compare(a.begin, b.begin) })
	return all
}

// check fails the test for every bucket of which some window holds more than its quota; and if it proves nothing, because no
// window of a bucket is nearly full, or less passed than that share of what could have.
func (r *run) check(least float64) {
	r.t.Helper()
	all := r.fullest()
	for _, bucket := range slices.Sorted(maps.Keys(all)) {
		w := all[bucket]
		r.t.Logf("%-12s at most %d of %d units in any window", bucket, w.Units, w.Quota)
		if w.Broken() {
			r.t.Errorf("%s: %d units within %v and %v, where the quota is %d; the limits changed at %+v", bucket, w.Units, w.Begin, w.End, w.Quota, r.scales)
		}
		nearly := w.Quota * 8 / 10
		if strings.HasPrefix(bucket, "trial") {
			nearly = w.Quota / 4 // of what it let pass beside a refusal nothing is known
		}
		if w.Units < nearly {
			r.t.Errorf("%s: no window holds more than %d of %d units: that proves nothing", bucket, w.Units, w.Quota)
		}
	}
	if share := r.share(); !(share >= least) {
		r.t.Errorf("%.1f %% of what could have passed has passed, want %.0f %%", 100*share, 100*least)
	}
	if len(all) != len(buckets()) {
		r.t.Errorf("only %v were ever spent", slices.Sorted(maps.Keys(all)))
	}
}

func (r *run) figures() string {
	n := make(map[answer]int)
	var took []time.Duration
	for _, d := range r.decisions {
		n[d.answer]++
		took = append(took, d.received-d.sent)
	}
	slices.Sort(took)
	logs, _ := r.admissions()
	hits := 0
	for _, log := range logs {
		hits += len(log)
	}
	return fmt.Sprintf("%d decisions: %d allowed, %d refused, %d without a store; %d changes of limits; median %v, longest %v; %d hits that passed in %d logs; %.1f %% of what could have passed",
		len(took), n[allowed], n[refused], n[unavailable], len(r.scales)-1, took[len(took)/2].Round(10*time.Microsecond),
		took[len(took)-1].Round(time.Millisecond), hits, len(logs), 100*r.share())
}
