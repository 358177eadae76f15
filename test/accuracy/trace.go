package main

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// start is when every trace begins: a boundary of windows, in ms since the Unix epoch.
const start = 28_333_334 * windowMS

// trace is the traffic of one client that is measured against a quota.
type trace struct {
	name string
	// times draws the instants of its requests, in ms since the Unix epoch. Random traffic lasts for so many windows.
	times func(r *rand.Rand, quota, windows int) []int64
}

// traces are the rows of the tables, in their order.
var traces = []trace{
	{"Poisson, 0.5 × the limit", poissonAt(0.5)},
	{"Poisson, 0.8 ×", poissonAt(0.8)},
	{"Poisson, 0.9 ×", poissonAt(0.9)},
	{"Poisson, 1.0 ×", poissonAt(1)},
	{"Poisson, 1.1 ×", poissonAt(1.1)},
	{"Poisson, 1.5 ×", poissonAt(1.5)},
	{"Poisson, 2.0 ×", poissonAt(2)},
	{"10 s at 3 ×, then 20 s of silence", onOffAt(3, 10_000, 20_000)},
	{"5 s at 10 ×, then 55 s of silence", onOffAt(10, 5_000, 55_000)},
	{"page loads, 0.8 ×", pageLoads},
	{boundaryBurst, once(aroundBoundary)},
	{burstBefore, once(beforeBoundary)},
	{burstAfter, once(afterBoundary)},
}

// The traces that an attacker sends, or the textbook.
const (
	boundaryBurst = "a full burst on each side of a boundary"
	burstBefore   = "a full burst just before a boundary, then pressure"
	burstAfter    = "a full burst just after a boundary, later pressure"
)

// draw returns the trace's requests against that quota: the same ones on every call.
func (t trace) draw(quota, windows int) []int64 {
	return t.times(source(t.name, quota), quota, windows)
}

// source is the randomness of one experiment. It depends on nothing but what the experiment is called.
func source(name string, quota int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(quota)))
}

// arrivals draws instants whose distances are exponential. It counts in µs, so that rounding to ms does not add up.
type arrivals struct {
	r  *rand.Rand
	us int64
}

// pause lets a random time pass, of that mean in ms.
func (a *arrivals) pause(mean float64) { a.us += int64(a.r.ExpFloat64() * mean * 1000) }

func (a *arrivals) ms() int64 { return a.us / 1000 }

// poisson draws requests at a constant mean rate, in requests a window.
func poisson(r *rand.Rand, rate float64, from int64, windows int) []int64 {
	var times []int64
	a, end := arrivals{r, from * 1000}, from+int64(windows)*windowMS
	for a.pause(float64(windowMS) / rate); a.ms() < end; a.pause(float64(windowMS) / rate) {
		times = append(times, a.ms())
	}
	return times
}

func poissonAt(load float64) func(*rand.Rand, int, int) []int64 {
	return func(r *rand.Rand, quota, windows int) []int64 { return poisson(r, load*float64(quota), start, windows) }
}

// onOff draws requests at that rate, in requests a window, while the client is on: for on ms on average, after off ms of silence.
func onOff(r *rand.Rand, rate, on, off float64, from int64, windows int) []int64 {
	var times []int64
	switching, end := arrivals{r, from * 1000}, from+int64(windows)*windowMS
	for switching.ms() < end {
		switching.pause(off)
		requests := switching
		switching.pause(on)
		for requests.pause(float64(windowMS) / rate); requests.ms() < min(switching.ms(), end); requests.pause(float64(windowMS) / rate) {
			times = append(times, requests.ms())
		}
	}
	return times
}

func onOffAt(load, on, off float64) func(*rand.Rand, int, int) []int64 {
	return func(r *rand.Rand, quota, windows int) []int64 {
		return onOff(r, load*float64(quota), on, off, start, windows)
	}
}

// pageLoads draws sessions of five pages on average, 10 s apart; a page is a fifth of the quota on average, its requests 50 ms apart.
// Together they are 0.8 times the quota.
func pageLoads(r *rand.Rand, quota, windows int) []int64 {
	const pages, load = 5, 0.8
	perPage := float64(quota) / 5
	var times []int64
	for _, at := range poisson(r, load*float64(quota)/(pages*perPage), start, windows) {
		session := arrivals{r, at * 1000}
		for another := true; another; another = r.Float64() < 1-1.0/pages {
			request := session
			for another := true; another; another = r.Float64() < 1-1/perPage {
				times = append(times, request.ms())
				request.pause(50)
			}
			session.pause(10_000)
		}
	}
	slices.Sort(times)
	return times
}

// once is what a client does around one boundary: at every other it would be the same.
func once(act func(quota int, boundary int64) []int64) func(*rand.Rand, int, int) []int64 {
	return func(_ *rand.Rand, quota, _ int) []int64 { return act(quota, start+windowMS) }
}

// aroundBoundary is the burst that every text on fixed windows shows: the quota in the last 50 ms of a window, and again in the
// first 50 ms of the next.
func aroundBoundary(quota int, boundary int64) []int64 {
	return slices.Concat(steady(boundary-50, 50, quota), steady(boundary, 50, quota))
}

// beforeBoundary spends the quota in the last millisecond of a window and then tries at ten times the limit for two windows.
func beforeBoundary(quota int, boundary int64) []int64 {
	return slices.Concat(steady(boundary-1, 1, quota), steady(boundary, 2*windowMS, 20*quota))
}

// afterBoundary spends the quota in the first millisecond of a window and tries at ten times the limit once it is free again.
func afterBoundary(quota int, boundary int64) []int64 {
	return slices.Concat(steady(boundary, 1, quota), steady(boundary+windowMS, windowMS, 10*quota))
}

// steady spaces n requests evenly over a time, in ms.
func steady(from, span int64, n int) []int64 {
	times := make([]int64, n)
	for i := range times {
		times[i] = from + span*int64(i)/int64(n)
	}
	return times
}
