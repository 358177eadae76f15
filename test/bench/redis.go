package main

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// redisServer is a Redis of its own that keeps nothing on disk.
type redisServer struct {
	*process
	client *redis.Client
	url    string
}

// startRedis starts one on a unix socket alone.
func startRedis(ctx context.Context, dir string) (*redisServer, error) {
	socket := filepath.Join(dir, "redis.sock")
	return startRedisAt(ctx, dir, "unix", socket, "--port", "0", "--unixsocket", socket)
}

// startRedisAt starts one that listens at that address by what args say.
func startRedisAt(ctx context.Context, dir, network, addr string, args ...string) (*redisServer, error) {
	p, err := start(ctx, "redis-server", "redis-server", append([]string{"--dir", dir, "--save", "", "--appendonly", "no"}, args...)...)
	if err != nil {
		return nil, err
	}
	scheme := map[string]string{"unix": "unix://", "tcp": "redis://"}[network]
	r := &redisServer{p, redis.NewClient(&redis.Options{Network: network, Addr: addr, Protocol: 2, PoolSize: inFlight}), scheme + addr}
	if err := p.await(func() bool { return r.client.Ping(ctx).Err() == nil }); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

func (r *redisServer) stop() {
	_ = r.client.Close()
	r.process.stop()
}

// scriptCalls is how often Redis was asked to run a script by its hash.
func (r *redisServer) scriptCalls() (float64, error) { return r.evalsha("calls") }

// scriptTime is for how many µs it has run them.
func (r *redisServer) scriptTime() (float64, error) { return r.evalsha("usec") }

func (r *redisServer) evalsha(field string) (float64, error) {
	stats, err := r.client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(stats, "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, field+"=")
	value, _, _ := strings.Cut(rest, ",")
	return strconv.ParseFloat(value, 64)
}

// stat is a number that INFO tells.
func (r *redisServer) stat(section, name string) (float64, error) {
	text, err := r.client.Info(context.Background(), section).Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(text, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r")
	return strconv.ParseFloat(value, 64)
}

// Both scripts are asked about this many buckets of one quota. The window is what makes each bucket hold fullness hits, so
// that every hit finds some that have left the window, and is let in.
const (
	buckets  = 250
	quota    = 100
	fullness = 60
)

// pace is the window for the rate at which decisions come. Nobody knows that rate beforehand, so each decision moves the
// window a little towards the one that keeps the buckets as full as they should be.
type pace struct {
	window atomic.Int64
	fixed  bool // nothing moves it
}

func newPace() *pace {
	p := new(pace)
	p.window.Store(int64(400 * time.Millisecond))
	return p
}

// standstill is a pace at which nothing leaves a bucket while it is measured.
func standstill() *pace {
	p := &pace{fixed: true}
	p.window.Store(int64(time.Hour))
	return p
}

func (p *pace) adapt(remaining int) {
	if p.fixed {
		return
	}
	step := p.window.Load() / 50_000 // a third of the window in a window, about
	if quota-remaining > fullness {
		step = -step
	}
	p.window.Add(step)
}

func (p *pace) now() time.Duration { return time.Duration(p.window.Load()).Truncate(time.Millisecond) }

// storeAsks returns callers who ask the Redis store, without a daemon around it. set keeps their buckets apart.
func storeAsks(ctx context.Context, store limiter.Store, set byte, p *pace) func(int) ask {
	return func(caller int) ask {
		hits, bucket := make([]limiter.Hit, 1), caller
		return func() (int, int, error) {
			bucket = (bucket + inFlight) % buckets
			hits[0] = limiter.Hit{
				Rule: "bench", Key: limiter.Key{set, byte(bucket)}, Cost: 1,
				Limit: limiter.Limit{Algorithm: limiter.SlidingLog, Quota: quota, Window: p.now()},
			}
			decisions, err := store.Take(ctx, hits)
			if err != nil {
				return 0, 0, err
			}
			p.adapt(int(decisions[0].Remaining))
			if decisions[0].Allowed {
				return 1, 0, nil
			}
			return 1, 1, nil
		}
	}
}

// sortedSetText is the script of the articles.
//
//go:embed sortedset.lua
var sortedSetText string

var sortedSet = redis.NewScript(sortedSetText)

// The sorted-set script is sent as the store sends its own: over as many connections, as many calls in flight, those of a
// connection together.
const (
	setConnections = 2
	setPipeline    = inFlight / setConnections
)

var members atomic.Int64 // makes the members of all sets unique

// sortedSetAsks returns callers who ask the sorted-set script. name keeps their buckets apart.
func (r *redisServer) sortedSetAsks(ctx context.Context, name string, p *pace) func(int) ask {
	return func(caller int) ask {
		bucket := caller * setPipeline
		return func() (decisions, refused int, err error) {
			length := strconv.FormatInt(p.now().Milliseconds(), 10)
			now := strconv.FormatInt(time.Now().UnixMilli(), 10)
			pipe := r.client.Pipeline()
			replies := make([]*redis.Cmd, setPipeline)
			for i := range replies {
				bucket = (bucket + setPipeline + 1) % buckets
				member := now + "-" + strconv.FormatInt(members.Add(1), 10)
				replies[i] = sortedSet.EvalSha(ctx, pipe, []string{"rl:" + name + ":" + strconv.Itoa(bucket)}, now, length, quota, member)
			}
			if _, err := pipe.Exec(ctx); err != nil {
				return 0, 0, err
			}
			for _, reply := range replies {
				answer, err := reply.Int64Slice()
				if err != nil || len(answer) != 3 {
					return 0, 0, fmt.Errorf("the sorted-set script answered %v: %w", answer, err)
				}
				p.adapt(int(answer[1]))
				refused += 1 - int(answer[0])
			}
			return setPipeline, refused, nil
		}
	}
}

// emptyScript shows how long a call of a script takes on its way.
var emptyScript = redis.NewScript("return 1")

// thenEmptyScript returns callers who ask what others ask and then call a script that does nothing, so that Redis has slept for as
// long as it sleeps between two takes of a daemon that is asked by one caller.
func (r *redisServer) thenEmptyScript(ctx context.Context, others func(int) ask) func(int) ask {
	return func(caller int) ask {
		other := others(caller)
		return func() (decisions, refused int, err error) {
			if decisions, refused, err = other(); err != nil {
				return 0, 0, err
			}
			return decisions, refused, emptyScript.EvalSha(ctx, r.client, nil).Err()
		}
	}
}
