package main

import (
	"errors"
	"os"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// The names of the subjects. Those that are asked in several forms bear the form after the name.
const (
	stdServer    = "no-op, usual decoding"
	bareServer   = "no-op, no decoding"
	stdAlone     = "no-op, one at a time"
	memoryDaemon = "memory, one rule"
	redisDaemon  = "Redis, one rule"
	redisAlone   = "Redis, one at a time"
	scriptAlone  = "no-op and then an empty script, one at a time"
	redisThree   = "Redis, three rules"
	denyCache    = "deny cache"
	longFlood    = "deny cache, longer"
	tenRules     = "memory, 10 rules"
	tenThousand  = "memory, 10 000 rules"
	fewKeys      = "memory, few keys"
	manyKeys     = "memory, many keys"
	ringAllowed  = "our script, allowed"
	ringRefused  = "our script, refused"
	setAllowed   = "sorted set, allowed"
	setRefused   = "sorted set, refused"
)

func in(f form, name string) string { return name + ", " + string(f) }

// aForm is the one that is asked where the form does not matter: the one that the recommended Envoy settings make.
const aForm = headerMap

func (l *lab) addNoops() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	usual, err := l.serve(std, self, "-noop", std)
	for _, f := range l.extent.forms {
		if err == nil {
			err = l.checks(&subject{name: in(f, stdServer)}, usual, f, trendingPath, manyClients)
		}
	}
	if err != nil || !l.extent.alone {
		return err
	}
	undecoded, err := l.serve(bare, self, "-noop", bare)
	if err != nil {
		return err
	}
	alone, andScript := &subject{name: stdAlone, callers: 1}, &subject{name: scriptAlone, callers: 1}
	if err := errors.Join(
		l.checks(&subject{name: bareServer}, undecoded, aForm, trendingPath, manyClients),
		l.checks(alone, usual, aForm, trendingPath, manyClients),
		l.checks(andScript, usual, aForm, trendingPath, manyClients)); err != nil {
		return err
	}
	andScript.newAsk = l.redis.thenEmptyScript(l.ctx, alone.newAsk)
	return emptyScript.Load(l.ctx, l.redis.client).Err()
}

func (l *lab) addMemory() error {
	d, err := l.serveDaemon("memory", configuration("", trending))
	for _, f := range l.extent.forms {
		if err == nil {
			err = l.checks(&subject{name: in(f, memoryDaemon)}, d, f, trendingPath, manyClients)
		}
	}
	return err
}

func (l *lab) addRules() error {
	for name, n := range map[string]int{tenRules: 10, tenThousand: 10_000} {
		d, err := l.serveDaemon(name, configuration("", manyRules(n)))
		if err != nil {
			return err
		}
		if err := l.checks(&subject{name: name}, d, aForm, rulePath, manyClients); err != nil {
			return err
		}
	}
	return nil
}

// addKeys fills two daemons with live buckets, each of which is asked about later.
func (l *lab) addKeys() error {
	r, err := newRequest(aForm, trendingPath)
	if err != nil {
		return err
	}
	for name, keys := range map[string]int{fewKeys: fewClients, manyKeys: l.extent.keys} {
		d, err := l.serveDaemon(name, configuration("", keptRules))
		if err != nil {
			return err
		}
		if err := d.askAll(l.ctx, r, keys); err != nil {
			return err
		}
		if err := l.checks(&subject{name: name}, d, aForm, trendingPath, keys); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) addRedisDaemon() error {
	d, err := l.serveDaemon("redis", configuration(l.redis.url, redisRules))
	if err != nil {
		return err
	}
	toRedis := []cost{{redisCPU, l.redis.mainThread}}
	for _, f := range l.extent.forms {
		refused, err := newRequest(f, refusedPath)
		if err != nil {
			return err
		}
		for range refusedQuota + 1 {
			err = errors.Join(err, d.askAll(l.ctx, refused, refusedClients))
		}
		err = errors.Join(err,
			l.checks(&subject{name: in(f, redisDaemon), costs: toRedis}, d, f, trendingPath, manyClients),
			l.checks(&subject{name: in(f, denyCache), costs: toRedis, refuses: true}, d, f, refusedPath, refusedClients))
		if err != nil {
			return err
		}
	}
	flood := &subject{
		name: longFlood, costs: []cost{{scriptCalls, l.redis.scriptCalls}}, refuses: true,
		once: true, warm: 1500 * time.Millisecond, length: 4 * time.Second, // so that each bucket has been asked about before
	}
	err = errors.Join(
		l.checks(flood, d, aForm, refusedPath, refusedClients),
		l.checks(&subject{name: redisThree, costs: toRedis}, d, aForm, uploadsPath, manyClients))
	if err != nil || !l.extent.alone {
		return err
	}
	return l.checks(&subject{name: redisAlone, costs: toRedis, callers: 1}, d, aForm, trendingPath, manyClients)
}

// addScripts adds the scripts in Redis, without a daemon.
func (l *lab) addScripts() error {
	store, err := limiter.NewRedis(limiter.RedisOptions{URL: l.redis.url, Timeout: 2 * time.Second})
	if err != nil {
		return err
	}
	store.Start(l.ctx)
	l.stops = append(l.stops, func() { _ = store.Close() })
	if err := sortedSet.Load(l.ctx, l.redis.client).Err(); err != nil {
		return err
	}
	toRedis := []cost{{redisCPU, l.redis.mainThread}}
	const settle = 500 * time.Millisecond // longer than a window
	ring := func(set byte, p *pace) func(int) ask { return storeAsks(l.ctx, store, set, p) }
	set := func(name string, p *pace) func(int) ask { return l.redis.sortedSetAsks(l.ctx, name, p) }
	ringFull := &subject{name: ringRefused, newAsk: ring('r', standstill()), refuses: true, costs: toRedis}
	setFull := &subject{name: setRefused, newAsk: set("r", standstill()), callers: setConnections, refuses: true, costs: toRedis}
	l.subjects = append(l.subjects, ringFull, setFull,
		&subject{name: ringAllowed, newAsk: ring('a', newPace()), warm: settle, costs: toRedis},
		&subject{name: setAllowed, newAsk: set("a", newPace()), callers: setConnections, warm: settle, costs: toRedis})
	const fill = quota*buckets/inFlight + buckets
	return errors.Join(ringFull.repeat(fill), setFull.repeat(fill))
}
