package main

import (
	"math"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// maxQuota is the highest quota that verdicts are counted for.
const maxQuota = 20_000

// warmUp is how many windows of a source's requests pass before its verdicts are counted. The counter looks back over two: by then it
// has forgotten the source before.
const warmUp = 2

// verdicts compares the sliding counter's estimate with the truth in an open loop, in which every request is counted and none
// refused. One run gives the verdicts for every quota. Make it with newVerdicts.
type verdicts struct {
	requests   int64
	difference float64 // sum over the requests of |estimate − truth| / truth
	// changes[q] is how many more verdicts are wrong with quota q than with q−1.
	changes [maxQuota + 2]int64

	counter *bucket
}

// unit is the cost of a request: large enough that what the counter rounds is little against it.
const unit = 1000

func newVerdicts() *verdicts {
	v := new(verdicts)
	v.restart()
	return v
}

// restart lets the counter forget what it has counted.
func (v *verdicts) restart() {
	v.counter = newBucket(limitOf(limiter.SlidingCounter, math.MaxUint32), unit)
}

// watch lets the counter count one source's requests, and judges those from that time on.
func (v *verdicts) watch(times []int64, from int64) {
	var truth sliding
	for _, at := range times {
		d := v.counter.take(at)
		truth.add(at)
		if at >= from {
			v.judge(math.MaxUint32-int64(d.Remaining), truth.count(at))
		}
	}
}

// judge counts one verdict: a request is refused when the count, this request included, is above the quota. The estimate is in
// units, rounded up.
func (v *verdicts) judge(estimate, truth int64) {
	v.requests++
	v.difference += math.Abs(float64(estimate)/unit-float64(truth)) / float64(truth)
	estimate = min((estimate+unit-1)/unit, maxQuota+1)
	truth = min(truth, maxQuota+1)
	// Wrong with the quotas that lie between the two: from the smaller to one below the greater.
	v.changes[min(estimate, truth)]++
	v.changes[max(estimate, truth)]--
}

// add puts other verdicts beside those counted so far.
func (v *verdicts) add(other *verdicts) {
	v.requests += other.requests
	v.difference += other.difference
	for i := range v.changes {
		v.changes[i] += other.changes[i]
	}
}

// meanDifference is the mean of |estimate − truth| / truth over the requests.
func (v *verdicts) meanDifference() float64 { return v.difference / float64(v.requests) }

// wrong is, for each quota up to maxQuota, the share of the verdicts that are wrong.
func (v *verdicts) wrong() []float64 {
	shares, sum := make([]float64, maxQuota+1), int64(0)
	for quota := range shares {
		sum += v.changes[quota]
		shares[quota] = float64(sum) / float64(v.requests)
	}
	return shares
}
