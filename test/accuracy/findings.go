package main

// findings are what the page and the plots show.
type findings struct {
	Main    *quotaStudy // with tableQuota
	Others  []*quotaStudy
	Logs    *logStudy // nil without logs
	Mixes   []mix
	paying  [2]*verdicts // customers; Poisson, then bursts
	near    []curve      // wrong verdicts over the load, for each of nearQuotas
	nearOn  curve        // the same in bursts, with tableQuota
	passing []curve      // admitted over the load, for each of algorithms
	attack  []curve      // the burst before a boundary, for each of algorithms
}

// The quotas, in units a minute.
const tableQuota = 100 // of the tables that are shown first, and of the plots

var (
	otherQuotas = []int{10, 1000}      // of the other tables
	nearQuotas  = []int{10, 100, 1000} // of the plot of verdicts near the limit
	logQuotas   = []int{10, 30, 100}   // that the real logs are held against
)

// For how many windows each person is watched. Machines are few but send much: ten times as many are watched for a tenth of that
// time, which is the same traffic with less noise.
const observed = 10

// compute computes all of it, the longest parts first. The logs may be nil.
func compute(e effort, logs []accessLog) *findings {
	var j jobs
	f := new(findings)
	mixes := planMixes(&j, e)
	for i, bursty := range []bool{false, true} {
		j.add(func() { f.paying[i] = customers(e.people/100, tableQuota, bursty).observe(3 * observed) })
	}
	f.Main = studyQuota(&j, e, tableQuota)
	for _, quota := range otherQuotas {
		f.Others = append(f.Others, studyQuota(&j, e, quota))
	}
	for _, quota := range nearQuotas {
		f.near = append(f.near, wrongOverLoad(&j, loads(2), quota, e.windowsFor(quota), false))
	}
	f.nearOn = wrongOverLoad(&j, loads(1), tableQuota, 2*e.windowsFor(tableQuota), true)
	f.passing = admittedOverLoad(&j, loads(2), tableQuota, e.windowsFor(tableQuota)/2)
	if logs != nil {
		f.Logs = studyLogs(&j, logs, logQuotas)
	}
	j.run()
	f.Mixes = mixes()
	for _, a := range algorithms {
		f.attack = append(f.attack, timeline(a, tableQuota))
	}
	return f
}

// mix is many people and, for every thousand of them, a machine.
type mix struct {
	Name     string
	verdicts *verdicts
	near     func(quota float64) float64 // the share of requests from sources near that quota
	wrong    []float64                   // the share of wrong verdicts for each quota
}

// planMixes adds the jobs that watch people and machines, both at a constant mean rate and in bursts. The function that it returns
// puts them together once the jobs are done.
func planMixes(j *jobs, e effort) func() []mix {
	var populations [2][2]population
	var seen [2][2]*verdicts
	for i, bursty := range []bool{false, true} {
		populations[i] = [2]population{people(e.people, bursty), machines(observed*e.people/1000, bursty)}
		j.add(func() { seen[i][0] = populations[i][0].observe(observed) })
		j.add(func() { seen[i][1] = populations[i][1].observe(1) })
	}
	const steady, bursty = 0, 1
	together := func(name string, people, machines int) mix {
		m := mix{Name: name, verdicts: newVerdicts()}
		m.verdicts.add(seen[people][0])
		m.verdicts.add(seen[machines][1])
		m.wrong = m.verdicts.wrong()
		m.near = func(quota float64) float64 {
			nearPeople, allPeople := populations[people][0].near(quota)
			nearMachines, allMachines := populations[machines][1].near(quota)
			return (observed*nearPeople + nearMachines) / (observed*allPeople + allMachines)
		}
		return m
	}
	return func() []mix {
		return []mix{
			together("all steady", steady, steady),
			together("people in bursts", bursty, steady),
			together("all in bursts", bursty, bursty),
		}
	}
}

// quoted is the share of wrong verdicts that is often quoted for the counter.
const quoted = 0.00003

// Harmless is the longest run of quotas with which no more than the quoted share of the verdicts is wrong; zeros if there is none.
// It looks only at quotas between the median rates of people and machines.
func (m mix) Harmless() (r struct{ From, To int }) {
	from := peopleMedian
	for quota := peopleMedian; quota <= machinesMedian; quota++ {
		if m.wrong[quota] > quoted {
			from = quota + 1
		} else if quota-from > r.To-r.From {
			r.From, r.To = from, quota
		}
	}
	return r
}
