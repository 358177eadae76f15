package limiter

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/ratelimitd/ratelimitd/lua"
)

// RedisOptions say where the buckets are and how long a take may last.
type RedisOptions struct {
	// URL is redis://, rediss:// or unix://, as go-redis parses it. Required.
	URL string
	// Timeout is the whole budget of one take. 0 is DefaultRedisTimeout.
	Timeout time.Duration
	// KeyPrefix begins the key of every bucket, before a colon. "" is DefaultKeyPrefix.
	KeyPrefix string
	// Now replaces Redis's own clock in tests: milliseconds since the Unix epoch. nil asks Redis.
	Now func() int64
	// Logger hears when Redis is lost and when it is back. nil is silence.
	Logger *zap.Logger
}

// Defaults of RedisOptions.
const (
	DefaultRedisTimeout = 20 * time.Millisecond
	DefaultKeyPrefix    = "rl"
)

// callerMargin is how long before the caller's own deadline a take gives up at most, so that its error is still heard: an
// eighth of the time that is left, where that is less.
const callerMargin = 10 * time.Millisecond

// driverSHA is what Redis calls the script by.
var driverSHA = func() string {
	sum := sha1.Sum([]byte(lua.Driver))
	return hex.EncodeToString(sum[:])
}()

// Redis keeps the buckets in one Redis server, shared by all who use the same server, database and key prefix. Each take is
// one call of the script lua.Driver; a few connections carry the calls of all takes. Redis may be away when the store is
// made and at any time later: takes then fail within their budget, or at once while it does not answer, and succeed
// again within a second of its return.
type Redis struct {
	options *redis.Options
	timeout time.Duration
	prefix  string
	now     func() int64
	log     *zap.Logger

	lanes    []*lane
	queue    chan *call            // takes that wait for a lane
	ready    atomic.Bool           // a lane was connected once
	answered atomic.Int64          // takes that Redis answered since the last report
	failed   atomic.Int64          // takes that it did not
	trouble  atomic.Pointer[error] // why the last of those failed, or the last attempt to connect
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// NewRedis returns a store that is not connected yet: see Start. Its error says what is wrong with the URL.
func NewRedis(o RedisOptions) (*Redis, error) {
	options, err := redis.ParseURL(o.URL)
	if err != nil {
		if parse := new(url.Error); errors.As(err, &parse) {
			err = parse.Err // without the URL, which may hold a password
		}
		return nil, fmt.Errorf("redis url: %w", err)
	}
	s := &Redis{
		options: options,
		timeout: o.Timeout,
		prefix:  o.KeyPrefix,
		now:     o.Now,
		log:     o.Logger,
		queue:   make(chan *call, maxQueue),
	}
	if s.timeout <= 0 {
		s.timeout = DefaultRedisTimeout
	}
	if s.prefix == "" {
		s.prefix = DefaultKeyPrefix
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	s.setClientOptions()
	for range laneCount {
		s.lanes = append(s.lanes, newLane(s))
	}
	return s, nil
}

// setClientOptions sets what the promises about time rest on, whatever the URL says. Each lane has a client of its own
// with one connection.
func (s *Redis) setClientOptions() {
	o := s.options
	o.ClientName = "ratelimitd"
	o.DisableIdentity = true // it costs each new connection a round trip
	o.Protocol = 2           // integers look the same in both, and this one has no pushes between the replies
	o.MaxRetries = -1        // a take that was sent may have been spent
	o.DialerRetries = 1
	o.DialTimeout = s.connectTimeout()
	o.ContextTimeoutEnabled = true
	o.ReadTimeout, o.WriteTimeout = -1, -1 // the context's deadline alone counts
	o.PoolSize = 1
	o.ConnMaxIdleTime = -1 // an idle connection stays: a new one would be made within a take's budget
	o.PipelinePoolSize = -1
}

// Name is what metrics call the store.
func (*Redis) Name() string { return "redis" }

// Take implements Store. It waits for Redis within its budget, the timeout, and never until later than shortly before ctx's
// deadline. A cancelled ctx does not stop it: who resets his requests fast enough would otherwise never pay for them.
func (s *Redis) Take(ctx context.Context, hits []Hit) ([]Decision, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	now := time.Now()
	if !s.answers(now) {
		s.failed.Add(1)
		return nil, errCircuitOpen
	}
	decisions, err := s.ask(ctx, hits, now)
	if err != nil {
		s.failed.Add(1)
		s.trouble.Store(&err)
		return nil, err
	}
	s.answered.Add(1)
	return decisions, nil
}

func (s *Redis) ask(ctx context.Context, hits []Hit, now time.Time) ([]Decision, error) {
	budget := budget(ctx, now, s.timeout)
	reply, err := s.call(s.arguments(hits, now), now, budget)
	if clock, yes := outside(reply); yes {
		reply, err = s.call(s.arguments(hits, clock), now, budget)
	}
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	decisions, err := decodeReply(hits, reply)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errReply, err)
	}
	return decisions, nil
}

// budget is for how long a take that begins now may wait: the timeout or the caller's own time, if that is less. A part of that
// is left for the way back.
func budget(ctx context.Context, now time.Time, timeout time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return timeout
	}
	left := deadline.Sub(now)
	return min(timeout, left-min(left/8, callerMargin))
}

// arguments returns the words of the command that runs the script on the hits, with the calendar's windows around now.
func (s *Redis) arguments(hits []Hit, now time.Time) []any {
	args := make([]any, 0, len(hits)+5)
	args = append(args, "evalsha", driverSHA, len(hits))
	packed := make([]byte, 0, len(hits)*hitSize)
	for i := range hits {
		args = append(args, s.key(hits[i].Key))
		packed = appendHit(packed, &hits[i], now)
	}
	args = append(args, packed)
	if s.now != nil {
		args = append(args, strconv.FormatInt(s.now(), 10))
	}
	return args
}

// key is the name of a bucket in Redis: the prefix, a colon, and 22 characters of base64url.
func (s *Redis) key(k Key) string {
	name := make([]byte, 0, len(s.prefix)+1+22)
	name = append(append(name, s.prefix...), ':')
	return string(base64.RawURLEncoding.AppendEncode(name, k[:]))
}
