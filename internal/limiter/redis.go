package limiter

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strconv"
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

const (
	// callerMargin is how long before the caller's own deadline a take gives up, so that its error is still heard.
	callerMargin = 2 * time.Millisecond
	// poolPerCPU bounds the connections, and with them the calls that a stalled Redis holds. A connection carries one take
	// at a time, so that 10 of them carry 10 000 takes a second at a round trip of 1 ms. Many more would hurt when all
	// are made at once, after Redis was lost.
	poolPerCPU = 10
	// bufferSize is that of a connection's read and write buffers, in bytes: a take is some hundred.
	bufferSize = 4096
)

// driverSHA is what Redis calls the script by.
var driverSHA = func() string {
	sum := sha1.Sum([]byte(lua.Driver))
	return hex.EncodeToString(sum[:])
}()

// Redis keeps the buckets in one Redis server, shared by all who use the same server, database and key prefix. Each take is
// one call of the script lua.Driver. Redis may be away when the store is made and at any time later: takes then fail
// within their budget, or at once after a few of them, and succeed again within a second of Redis's return.
type Redis struct {
	options *redis.Options
	timeout time.Duration
	prefix  string
	now     func() int64
	log     *zap.Logger

	client   atomic.Pointer[redis.Client] // nil while Redis is not asked: the open circuit
	failures atomic.Int32                 // takes that failed in a row
	failing  atomic.Pointer[error]        // why takes fail; nil while they do not
	ready    atomic.Bool
	lost     chan *redis.Client // the client that was given up, to be closed and replaced
	stop     context.CancelFunc
	stopped  chan struct{}
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
		lost:    make(chan *redis.Client, 1),
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
	return s, nil
}

// setClientOptions sets what the promises about time rest on, whatever the URL says.
func (s *Redis) setClientOptions() {
	o := s.options
	o.ClientName = "ratelimitd"
	o.DisableIdentity = true // it costs each new connection a round trip
	o.Protocol = 2           // integers look the same in both, and this one has no pushes between the replies
	o.MaxRetries = -1        // a take that was sent may have been spent
	o.DialerRetries = 1
	o.DialTimeout = connectTimeout // a connection that comes too late for its first caller serves the next
	o.ContextTimeoutEnabled = true
	o.ReadTimeout, o.WriteTimeout = -1, -1 // the context's deadline alone counts
	o.PoolTimeout = s.timeout
	if o.PoolSize == 0 {
		o.PoolSize = poolPerCPU * runtime.GOMAXPROCS(0)
	}
	o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	o.PipelinePoolSize = -1
}

// Name is what metrics call the store.
func (*Redis) Name() string { return "redis" }

// Take implements Store. It answers within its budget: the timeout, and never later than shortly before ctx's deadline. A
// cancelled ctx does not stop it: who resets his requests fast enough would otherwise never pay for them.
func (s *Redis) Take(ctx context.Context, hits []Hit) ([]Decision, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	client := s.client.Load()
	if client == nil {
		return nil, errCircuitOpen
	}
	ctx, cancel := s.budget(ctx)
	defer cancel()
	reply, err := s.run(ctx, client, hits)
	s.note(client, err)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	decisions, err := decodeReply(hits, reply)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errReply, err)
	}
	return decisions, nil
}

// budget returns the context under which one take runs.
func (s *Redis) budget(ctx context.Context) (context.Context, context.CancelFunc) {
	now := time.Now()
	deadline := now.Add(s.timeout)
	if callers, ok := ctx.Deadline(); ok {
		callers = callers.Add(-min(callerMargin, max(0, callers.Sub(now)/2)))
		if callers.Before(deadline) {
			deadline = callers
		}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline)
}

// run calls the script, in one round trip. A Redis that has lost the script answers before it has run anything, so the
// second call, which brings the script along, counts nothing twice.
func (s *Redis) run(ctx context.Context, client *redis.Client, hits []Hit) ([]int64, error) {
	args := s.arguments(hits)
	args[0], args[1] = "evalsha", driverSHA
	reply, err := call(ctx, client, args)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "eval", lua.Driver
		reply, err = call(ctx, client, args)
	}
	return reply, err
}

func call(ctx context.Context, client *redis.Client, args []any) ([]int64, error) {
	cmd := redis.NewIntSliceCmd(ctx, args...)
	_ = client.Process(ctx, cmd) // the command keeps the error
	return cmd.Result()
}

// arguments returns the words of the command that runs the script on the hits; the first two, the command and the script,
// are left to the caller.
func (s *Redis) arguments(hits []Hit) []any {
	args := make([]any, 0, len(hits)+5)
	args = append(args, nil, nil, len(hits))
	packed := make([]byte, 0, len(hits)*hitSize)
	for _, h := range hits {
		args = append(args, s.key(h.Key))
		packed = appendHit(packed, h)
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
