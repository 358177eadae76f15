package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// scaled is how much is measured of daemons that share their Redis, in two minutes.
var scaled = extent{rounds: 4, trial: 350 * time.Millisecond}

// scaleClients are so many that their rule refuses none of them while it is measured.
const scaleClients = 50_000

// bucketRules has rules whose buckets are as small as can be: one for each client, and one for all.
const bucketRules = `
- {name: small, match: {paths: [/api/videos/small]}, key: [client_ip, route], limit: 100/1m, algorithm: token_bucket}
- {name: hot, match: {paths: [/api/videos/hot]}, key: [], limit: 1000000/1s, algorithm: token_bucket}
`

// traffic is what is asked, by so many callers in all.
type traffic struct {
	buckets string // as the table names them
	path    string
	clients int
	callers int
	refuses bool
}

func sparse(callers int) traffic {
	return traffic{"a log for each client", trendingPath, scaleClients, callers, false}
}

var (
	small   = traffic{"a token bucket for each client", "/api/videos/small?region=gb&page=2", scaleClients, inFlight, false}
	hot     = traffic{"one token bucket for all", "/api/videos/hot?region=gb&page=2", scaleClients, inFlight, false}
	three   = traffic{"three logs, of two slots", uploadsPath, scaleClients, inFlight, false}
	refused = traffic{"logs of 100 clients, all full", refusedPath, refusedClients, inFlight, true}
)

// saturating is how many requests are in flight when all that is there is busy.
const saturating = 8 * inFlight

// run is traffic to the first of the daemons of a fleet, or to stores of it without a daemon.
type run struct {
	fleet   *fleet
	asked   string // as the table names them
	daemons int
	buckets string
	*subject
}

// The further kinds of figures.
const (
	loadCPU    = "load"        // µs of the load generator for each decision
	scriptTime = "scripts"     // µs in scripts for each decision, by the clock
	toRedis    = "to Redis"    // bytes for each decision
	fromRedis  = "from Redis"  // bytes for each decision
	toReplica  = "replication" // bytes for each decision
)

// redisNumber is the kind of the figures of one of several Redis: µs of its main thread for each decision.
func redisNumber(i int) string { return fmt.Sprintf("%s %d", redisCPU, i) }

func benchScale(ctx context.Context, daemon string) error {
	fmt.Fprintln(os.Stderr, "bench: starting; filling the buckets")
	var runs []run
	l, err := newLab(ctx, daemon, scaled, func(l *lab) (err error) {
		runs, err = l.addFleets()
		return err
	})
	if err != nil {
		return err
	}
	defer l.stop()
	f, err := l.measure()
	if err != nil {
		return err
	}
	printScale(os.Stdout, f, runs)
	return nil
}

// addFleets adds daemons on one Redis, on three masters, and on one with a replica, and what they are asked.
func (l *lab) addFleets() (runs []run, err error) {
	single, errSingle := l.addFleet("one", size{daemons: 4, stores: inFlight, masters: 1})
	cluster, errCluster := l.addFleet("three masters", size{daemons: 4, masters: 3, clustered: true})
	lone, errLone := l.addFleet("one master of a cluster", size{stores: inFlight, masters: 1, clustered: true})
	replicated, errReplicated := l.addFleet("one, with a replica", size{daemons: 4, masters: 1})
	if err := errors.Join(errSingle, errCluster, errLone, errReplicated); err != nil {
		return nil, err
	}
	if err := l.addReplica(replicated.masters[0]); err != nil {
		return nil, err
	}
	add := func(f *fleet, daemons int, all ...traffic) {
		for _, t := range all {
			if err == nil {
				var r run
				r, err = l.addRun(f, daemons, t)
				runs = append(runs, r)
			}
		}
	}
	add(single, 1, sparse(1), sparse(8), sparse(inFlight), sparse(saturating))
	add(single, 2, sparse(inFlight), sparse(saturating))
	add(single, 4, sparse(4), sparse(inFlight), sparse(saturating))
	add(cluster, 1, sparse(inFlight), sparse(saturating))
	add(cluster, 2, sparse(inFlight), sparse(saturating))
	add(cluster, 4, sparse(inFlight), sparse(saturating))
	add(replicated, 4, sparse(inFlight), small)
	add(single, 1, small, hot)
	add(single, 4, small, hot, three)
	add(cluster, 4, small, hot, three)
	add(single, 1, refused)
	add(single, 4, refused)
	for _, f := range []*fleet{single, lone} {
		for _, stores := range []int{1, 4, 16, inFlight} {
			runs = append(runs, l.addStoreRun(f, stores, saturating))
		}
		runs = append(runs, l.addStoreRun(f, inFlight, inFlight))
	}
	return runs, err
}

// addRun adds traffic to so many daemons of a fleet, in which each has the same share.
func (l *lab) addRun(f *fleet, daemons int, t traffic) (run, error) {
	r, err := newRequest(aForm, t.path)
	if err != nil {
		return run{}, err
	}
	asked := f.daemons[:daemons]
	s := l.addScaleSubject(f, fmt.Sprintf("%d on %s: %s, %d", daemons, f.redis, t.buckets, t.callers), t)
	s.newAsk = func(caller int) ask { return asked[caller%daemons].asks(l.ctx, r, t.clients)(caller / daemons) }
	s.costs = append(s.costs, cost{serverCPU, sum(asked, (*server).cpu)})
	return run{f, plural(daemons, "daemon"), daemons, t.buckets, s}, nil
}

// addStoreRun adds takes of so many stores of a fleet, without daemons: so little else is to be done that Redis has a core of
// its own, and is busy all the time.
func (l *lab) addStoreRun(f *fleet, stores, callers int) run {
	t := sparse(callers)
	name := plural(stores, "store")
	s := l.addScaleSubject(f, fmt.Sprintf("%s on %s, %d", name, f.redis, callers), t)
	s.newAsk = func(caller int) ask { return clientTakes(l.ctx, f.stores[caller%stores]) }
	return run{f, name, 0, t.buckets, s}
}

func (l *lab) addScaleSubject(f *fleet, name string, t traffic) *subject {
	s := &subject{name: name, callers: t.callers, refuses: t.refuses, costs: []cost{
		{loadCPU, func() (float64, error) { return cpuOf("bench", os.Getpid()) }},
		{scriptCalls, sum(f.masters, (*redisServer).scriptCalls)},
		{scriptTime, sum(f.masters, (*redisServer).scriptTime)},
		{toRedis, sum(f.masters, (*redisServer).received)},
		{fromRedis, sum(f.masters, (*redisServer).sent)},
		{toReplica, sum(f.masters, (*redisServer).replicated)},
	}}
	for i, m := range f.masters {
		s.costs = append(s.costs, cost{redisNumber(i), m.mainThread})
	}
	l.subjects = append(l.subjects, s)
	return s
}

// clientTakes returns a caller who asks a store about clients at random.
func clientTakes(ctx context.Context, store limiter.Store) ask {
	limit := limiter.Limit{Algorithm: limiter.SlidingLog, Quota: quota, Window: time.Minute}
	hits := []limiter.Hit{{Rule: "stores", Cost: 1, Limit: limit}}
	return func() (int, int, error) {
		client := rand.Uint32N(scaleClients)
		hits[0].Tag = client
		binary.BigEndian.PutUint32(hits[0].Key[:], client)
		decisions, err := store.Take(ctx, hits)
		if err != nil {
			return 0, 0, err
		}
		if decisions[0].Allowed {
			return 1, 0, nil
		}
		return 1, 1, nil
	}
}

func plural(n int, what string) string {
	if n > 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// sum adds up what one reads of each.
func sum[T any](all []T, read func(T) (float64, error)) func() (float64, error) {
	return func() (float64, error) {
		total := 0.0
		for _, one := range all {
			n, err := read(one)
			if err != nil {
				return 0, err
			}
			total += n
		}
		return total, nil
	}
}

// redis is the µs that the busiest Redis of a run needs for each decision of all, and together what all of them need.
func (r run) redis(f figures) (busiest, together float64) {
	for i := range r.fleet.masters {
		least := slices.Min(f[figure{r.name, redisNumber(i)}])
		busiest, together = max(busiest, least), together+least
	}
	return busiest, together
}
