package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// figures are what was measured, by subject and kind, round by round.
type figures map[figure][]float64

// figure names what was measured of a subject.
type figure struct{ subject, kind string }

// The kinds of figures.
const (
	serverCPU   = "server" // µs of all threads of the ext_authz server for each decision
	envoyCPU    = "Envoy"  // µs of all threads of Envoy for each request
	redisCPU    = "Redis"  // µs of the thread that runs the commands for each decision
	scriptCalls = "calls"  // of scripts in Redis for each decision
	rate        = "decisions a second"
	p50         = "p50" // µs from question to answer, half of the time
	p99         = "p99" // … 99 times of 100
)

// measure measures all subjects in turn, round by round, so that a change of the machine's speed meets all of them.
func (l *lab) measure() (figures, error) {
	all := figures{}
	order := slices.Clone(l.subjects)
	for round := range l.extent.rounds {
		fmt.Fprintf(os.Stderr, "bench: round %d of %d\n", round+1, l.extent.rounds)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, s := range order {
			if s.once && round > 0 {
				continue
			}
			if err := l.trial(s, all); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// tries is how often a trial is begun: the buckets fill when the machine becomes faster, until their pace has followed.
const tries = 3

// trial measures a subject once.
func (l *lab) trial(s *subject, into figures) error {
	m, err := s.measure(l.ctx, l.extent.trial)
	for try := 1; try < tries && errors.Is(err, errOtherLoad); try++ {
		m, err = s.measure(l.ctx, l.extent.trial)
	}
	if err != nil {
		return err
	}
	add := func(kind string, value float64) {
		name := figure{s.name, kind}
		into[name] = append(into[name], value)
	}
	for i, c := range s.costs {
		add(c.kind, m.costs[i])
	}
	add(rate, m.decisions)
	add(p50, float64(m.p50)/float64(time.Microsecond))
	add(p99, float64(m.p99)/float64(time.Microsecond))
	return nil
}

// result is one figure of the table: the one that is judged, and what the rounds said.
type result struct{ value, median, low, high float64 }

// constant is a result that is the same in every round.
func constant(value float64) result { return result{value, value, value, value} }

// resultOf sums up what the rounds said.
func resultOf(value float64, rounds []float64) result {
	slices.Sort(rounds)
	return result{value, rounds[len(rounds)/2], rounds[0], rounds[len(rounds)-1]}
}

// ratio relates two figures: the least of each, because what other work on the machine adds to a figure is never negative.
func (f figures) ratio(of, to figure) result {
	var rounds []float64
	for i := range f[of] {
		rounds = append(rounds, f[of][i]/f[to][i])
	}
	return resultOf(slices.Min(f[of])/slices.Min(f[to]), rounds)
}

// callsASecond is how often Redis was asked in each second about each of the refused buckets.
func (f figures) callsASecond(subject string) result {
	return constant(f[figure{subject, scriptCalls}][0] * f[figure{subject, rate}][0] / refusedClients)
}

// added is the time that a lone request takes longer than at the no-op server, as a share of what it may: a round trip to
// Redis, which is what is longer in withTrip, and 50 µs.
func (f figures) added(of, to, withTrip figure) result {
	share := func(of, to, withTrip float64) float64 { return (of - to) / (withTrip - to + 50) }
	var rounds []float64
	for i := range f[of] {
		rounds = append(rounds, share(f[of][i], f[to][i], f[withTrip][i]))
	}
	return resultOf(share(slices.Min(f[of]), slices.Min(f[to]), slices.Min(f[withTrip])), rounds)
}

// String is the figure, and in brackets the median and the extremes of the rounds.
func (r result) String() string {
	if r == constant(r.value) {
		return fmt.Sprintf("%.2f", r.value)
	}
	return fmt.Sprintf("%.2f (%.2f; %.2f–%.2f)", r.value, r.median, r.low, r.high)
}
