package main

import (
	"math"
	"testing"
)

// byHand is the share of wrong verdicts with a quota, worked out from the counter's formula and a count of all requests.
func byHand(times []int64, quota int64) float64 {
	wrong := 0
	for i, at := range times {
		var real, current, previous int64
		for _, t := range times[:i+1] {
			if at-t < windowMS {
				real++
			}
			switch at/windowMS - t/windowMS {
			case 0:
				current++
			case 1:
				previous++
			}
		}
		estimateIsAbove := current*windowMS+previous*(windowMS-at%windowMS) > quota*windowMS
		if estimateIsAbove != (real > quota) {
			wrong++
		}
	}
	return float64(wrong) / float64(len(times))
}

func TestOneRunGivesTheShareOfWrongVerdictsForEveryQuota(t *testing.T) {
	times := onOff(source("by hand", 0), 90, 10_000, 20_000, start, 20)
	v := newVerdicts()
	v.watch(times, 0)
	wrong, some := v.wrong(), 0
	for _, quota := range []int64{1, 5, 10, 20, 30, 40, 60, 200} {
		want := byHand(times, quota)
		if math.Abs(wrong[quota]-want) > 1e-9 {
			t.Errorf("quota %d: %v of the verdicts are wrong, want %v", quota, wrong[quota], want)
		}
		if want > 0 {
			some++
		}
	}
	if some < 5 {
		t.Errorf("only %d of the quotas have wrong verdicts", some)
	}
}

func TestTheMeanDifferenceFallsWithTheRootOfTheRate(t *testing.T) {
	for _, rate := range []float64{27, 100, 400} {
		p := population{name: "steady", rates: []float64{rate}}
		got, want := p.observe(int(200_000/rate)).meanDifference(), 0.313/math.Sqrt(rate)
		if math.Abs(got/want-1) > 0.1 {
			t.Errorf("at %v requests a minute the mean difference is %.4f, want about %.4f", rate, got, want)
		}
	}
}

func TestASourceIsNotTakenForTheOneBefore(t *testing.T) {
	p := population{name: "two", rates: []float64{1000, 5}}
	if v := p.observe(3); v.wrong()[30] != 0 {
		t.Errorf("%v of the verdicts are wrong with a quota that neither source comes near", v.wrong()[30])
	}
}

func TestPopulationsHaveTheRatesThatTheyClaim(t *testing.T) {
	if rates := lognormal(3, 5, 1); math.Abs(rates[1]-5) > 1e-9 || math.Abs(rates[0]*rates[2]-25) > 1e-9 || rates[0] >= rates[1] {
		t.Errorf("rates %v are not lognormal around 5", rates)
	}
	paying := customers(4, 100, false)
	if near, all := paying.near(100); near != 87.5+112.5 || all != 400 {
		t.Errorf("%v of %v requests come from customers near 100, of %v", near, all, paying.rates)
	}
}
