// Package config reads the configuration file: every default filled in, every bound checked, every problem reported at once
// with its place. A Config that Parse returned is valid and needs no further check.
package config

import (
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// Config is what one file says, with every default filled in.
type Config struct {
	// Listen is where Envoy may reach the daemon; there is at least one.
	Listen []Listen
	// Admin is the host:port of the admin HTTP server; "" turns it off.
	Admin string
	Log   Log
	Store Store
	// OnStoreError is the policy of each rule that does not state its own.
	OnStoreError rules.StorePolicy
	// Replicas is how many daemons share the limits while each decides on its own: ≥ 1.
	Replicas uint32
	ClientIP rules.ClientIP
	Response Response
	// Rules are the rules in the order of the file; there may be none.
	Rules []rules.Rule
}

// Listen is one address of the gRPC server.
type Listen struct {
	// Network is tcp or unix.
	Network string
	// Address is host:port, or the absolute path of the socket.
	Address string
	// Mode is the permissions of a unix socket; 0 for tcp.
	Mode fs.FileMode
}

// Log is how the daemon logs.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // json or console
}

// Store is where the buckets live.
type Store struct {
	// Redis is nil when the buckets live in the memory of the process.
	Redis  *Redis
	Memory Memory
}

// Redis says how to reach the Redis that keeps the buckets.
type Redis struct {
	// URL leads to the server, the cluster or the sentinels, as go-redis parses it for the mode. It may hold passwords.
	URL string
	// Mode is single, cluster or sentinel.
	Mode string
	// Timeout is the whole budget that one decision has for the store: 1 ms … 1 min.
	Timeout time.Duration
	// KeyPrefix goes before each key: [A-Za-z0-9:_-]{1,32}.
	KeyPrefix string
}

// Memory bounds the store in the memory of the process.
type Memory struct {
	// MaxKeys is the most buckets that are kept: 1 … 2^31−1.
	MaxKeys int
}

// Response is what answers look like.
type Response struct {
	// XRateLimit and RateLimit turn on the two families of headers.
	XRateLimit, RateLimit bool
	// Body is json.
	Body string
	// Status is the HTTP status of a refusal: 400 … 599.
	Status int
}

// Parse reads a configuration. The file's name is used in problems alone; nil sets are the builtin ones. The warnings are in
// the order of the lines, and there are none beside an error. The error is a Problems with everything that is wrong.
func Parse(file string, data []byte, sets AddressSets) (*Config, []Problem, error) {
	if sets == nil {
		sets = BuiltinSets()
	}
	d := &decoder{file: file, sets: sets}
	c := defaults()
	var decoded []decodedRule
	root, ok := d.document(data)
	if ok {
		decoded = root.config(c)
	}
	if d.problems != nil {
		return nil, nil, Problems(inOrder(d.problems))
	}
	if len(decoded) == 0 {
		root.entry("rules", root.node).warn("there is no rule, so every request is allowed; wanted at least one")
	}
	s := newSurvey(decoded)
	s.warn()
	return c, inOrder(d.warnings), nil
}

func defaults() *Config {
	return &Config{
		Listen: []Listen{{Network: "tcp", Address: "127.0.0.1:9001"}},
		Admin:  "127.0.0.1:9002",
		Log:    Log{Level: "info", Format: "json"},
		Store:  Store{Memory: Memory{MaxKeys: limiter.DefaultMaxKeys}},
		ClientIP: rules.ClientIP{
			Headers:    []rules.AddressHeader{{Name: rules.ForwardedFor}},
			IPv6Prefix: 64,
		},
		Replicas: 1,
		Response: Response{XRateLimit: true, RateLimit: true, Body: "json", Status: 429},
	}
}

// config decodes the whole file over the defaults.
func (v value) config(c *Config) []decodedRule {
	f, ok := v.fields(fileSection)
	if !ok {
		return nil
	}
	f.listen(c)
	f.log(&c.Log)
	f.store(&c.Store)
	if policy, ok := f.get("on_store_error"); ok {
		c.OnStoreError = policy.storePolicy()
	}
	if replicas, ok := f.get("replicas"); ok {
		n, _ := replicas.number(1, math.MaxUint32)
		c.Replicas = uint32(n)
	}
	f.clientIP(&c.ClientIP)
	f.response(&c.Response)
	decoded := f.rules(c.OnStoreError)
	for _, r := range decoded {
		c.Rules = append(c.Rules, r.rule)
	}
	f.shares(c, decoded)
	return decoded
}

// UseRedis keeps the buckets in the Redis of that URL instead of the store that the file states; the file's other
// settings for Redis, or else their defaults, hold. The URL must be one that store.redis.url could be in that mode.
func (c *Config) UseRedis(url string) error {
	redis := defaultRedis()
	if c.Store.Redis != nil {
		*redis = *c.Store.Redis
	}
	if err := checkRedisURL(redis.Mode, url); err != nil {
		return fmt.Errorf("the Redis URL %w", err)
	}
	redis.URL = url
	c.Store.Redis = redis
	return nil
}

// RestartNeeded names the sections that differ from the next configuration and that a running daemon cannot change:
// listen, admin and store.
func (c *Config) RestartNeeded(next *Config) []string {
	var changed []string
	for _, section := range []struct {
		name      string
		old, next any
	}{{"listen", c.Listen, next.Listen}, {"admin", c.Admin, next.Admin}, {"store", c.Store, next.Store}} {
		if !reflect.DeepEqual(section.old, section.next) {
			changed = append(changed, section.name)
		}
	}
	return changed
}
