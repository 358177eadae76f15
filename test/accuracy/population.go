package main

import (
	"math"
	"math/rand/v2"
)

// population is many sources of requests, each with its own mean rate.
type population struct {
	name   string
	rates  []float64 // requests a window
	bursty bool      // on for 10 s and silent for 20 s on average, at three times the rate while on; else Poisson
}

// The median rates of people and machines, in requests a minute. A lognormal rate is median·e^(σ·z) with z normal.
const (
	peopleMedian, peopleSigma     = 5, 1
	machinesMedian, machinesSigma = 6000, 0.5
)

func people(n int, bursty bool) population {
	return population{name: "people", rates: lognormal(n, peopleMedian, peopleSigma), bursty: bursty}
}

func machines(n int, bursty bool) population {
	return population{name: "machines", rates: lognormal(n, machinesMedian, machinesSigma), bursty: bursty}
}

// customers use what they have paid for: their rates lie evenly from half to one and a half times that quota.
func customers(n, quota int, bursty bool) population {
	p := population{name: "customers", bursty: bursty}
	for i := range n {
		p.rates = append(p.rates, float64(quota)*(0.5+(float64(i)+0.5)/float64(n)))
	}
	return p
}

// lognormal returns n rates at the evenly spaced quantiles of the distribution.
func lognormal(n int, median, sigma float64) []float64 {
	rates := make([]float64, n)
	for i := range rates {
		z := math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/float64(n)-1)
		rates[i] = median * math.Exp(sigma*z)
	}
	return rates
}

// near is how many requests a window come from sources whose rate is 0.8 to 1.25 times the quota, and how many from all.
func (p population) near(quota float64) (near, all float64) {
	for _, rate := range p.rates {
		all += rate
		if rate >= 0.8*quota && rate <= 1.25*quota {
			near += rate
		}
	}
	return near, all
}

// observe watches one source after another, each for so many windows once it has warmed up.
func (p population) observe(windows int) *verdicts {
	v, r, from := newVerdicts(), source(p.name, windows), int64(start)
	for _, rate := range p.rates {
		v.watch(p.requests(r, rate, from, warmUp+windows), from+warmUp*windowMS)
		from += int64(warmUp+windows) * windowMS
	}
	return v
}

func (p population) requests(r *rand.Rand, rate float64, from int64, windows int) []int64 {
	if p.bursty {
		return onOff(r, 3*rate, 10_000, 20_000, from, windows)
	}
	return poisson(r, rate, from, windows)
}
