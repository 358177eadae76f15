package main

import (
	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// effort says how much is computed.
type effort struct {
	requests int // of a random trace at its limit, about
	windows  int // the most that a trace lasts
	tries    int // of the adversary, with quotas up to 100
	people   int // in the population
}

// full is what the committed page is made with.
var full = effort{requests: 100_000, windows: 2000, tries: 600, people: 30_000}

// windowsFor is how many windows a trace against that quota lasts.
func (e effort) windowsFor(quota int) int { return min(e.windows, e.requests/quota) }

// triesFor is how many attempts the adversary has: fewer where each has more requests.
func (e effort) triesFor(quota int) int { return min(e.tries, 100*e.tries/quota) }

// row is a trace, or a log, and how each algorithm did on it with one quota.
type row struct {
	name     string
	quota    int
	outcomes []outcome // in the order of algorithms
}

// quotaStudy is how the algorithms do with one quota.
type quotaStudy struct {
	Quota int
	rows  []row   // one for each trace
	worst []worst // one for each algorithm
}

func studyQuota(j *jobs, e effort, quota int) *quotaStudy {
	s := &quotaStudy{Quota: quota, rows: make([]row, len(traces)), worst: make([]worst, len(algorithms))}
	for i, t := range traces {
		s.rows[i] = row{name: t.name, quota: quota}
		j.add(func() { s.rows[i].outcomes = compare(quota, t.draw(quota, e.windowsFor(quota))) })
	}
	for i, a := range algorithms {
		j.add(func() { s.worst[i] = attack(a, quota, e.triesFor(quota)) })
	}
	return s
}

// curve is a line of a plot.
type curve struct{ x, y []float64 }

func newCurve(x []float64) curve { return curve{x, make([]float64, len(x))} }

// loads are the mean rates, relative to the limit, from 0.5 to 2, that many in each tenth.
func loads(inTenth int) []float64 {
	var loads []float64
	for i := range 15*inTenth + 1 {
		loads = append(loads, float64(5*inTenth+i)/float64(10*inTenth))
	}
	return loads
}

// wrongOverLoad is the share of the counter's verdicts that are wrong in the open loop, for one source at each load.
func wrongOverLoad(j *jobs, loads []float64, quota, windows int, bursty bool) curve {
	c := newCurve(loads)
	for i, load := range loads {
		j.add(func() {
			p := population{name: "one source", rates: []float64{load * float64(quota)}, bursty: bursty}
			c.y[i] = p.observe(windows).wrong()[quota]
		})
	}
	return c
}

// admittedOverLoad is what each algorithm admits relative to the exact log, in the closed loop, for Poisson traffic.
func admittedOverLoad(j *jobs, loads []float64, quota, windows int) []curve {
	curves := make([]curve, len(algorithms))
	for a := range curves {
		curves[a] = newCurve(loads)
	}
	for i, load := range loads {
		j.add(func() {
			outcomes := compare(quota, trace{"curve", poissonAt(load)}.draw(quota, windows))
			for a, o := range outcomes {
				curves[a].y[i] = float64(o.Admitted) / float64(outcomes[0].Admitted)
			}
		})
	}
	return curves
}

// timeline is how much the sliding window holds around one full burst just before a boundary and the pressure after it, every
// half second: x in seconds after the boundary, y relative to the quota.
func timeline(a limiter.Algorithm, quota int) curve {
	const step = 500
	boundary := start + windowMS
	b, admitted, requests := newBucket(limitOf(a, quota), 1), sliding{}, beforeBoundary(quota, boundary)
	var c curve
	for at := boundary - 10_000; at <= boundary+2*windowMS; at += step {
		for ; len(requests) > 0 && requests[0] <= at; requests = requests[1:] {
			if b.take(requests[0]).Allowed {
				admitted.add(requests[0])
			}
		}
		c.x = append(c.x, float64(at-boundary)/1000)
		c.y = append(c.y, float64(admitted.count(at))/float64(quota))
	}
	return c
}

// logStudy is how the algorithms do on the real logs.
type logStudy struct {
	logs     []accessLog
	quotas   []int
	rows     []row
	verdicts []*verdicts // the counter's in the open loop, one for each log
}

func studyLogs(j *jobs, logs []accessLog, quotas []int) *logStudy {
	s := &logStudy{
		logs: logs, quotas: quotas,
		rows:     make([]row, len(logs)*len(quotas)),
		verdicts: make([]*verdicts, len(logs)),
	}
	for i, l := range logs {
		j.add(func() { s.verdicts[i] = l.observe() })
		for k, quota := range quotas {
			r := &s.rows[i*len(quotas)+k]
			*r = row{name: l.name, quota: quota}
			j.add(func() { r.outcomes = compare(quota, l.byClient()...) })
		}
	}
	return s
}
