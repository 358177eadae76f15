package config

import (
	"math"
	"regexp"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// The words of the file, in the order of the values.
var (
	storePolicies = []string{"allow", "deny", "local"}
	storeModes    = []string{limiter.ModeSingle, limiter.ModeCluster, limiter.ModeSentinel}
)

func (f fields) store(s *Store) {
	f, ok := f.section("store", storeSection)
	if !ok {
		return
	}
	if redis, ok := f.section("redis", redisSection); ok {
		s.Redis = redis.redis()
	}
	if memory, ok := f.section("memory", memorySection); ok {
		if v, ok := memory.get("max_keys"); ok {
			n, _ := v.number(1, math.MaxInt32)
			s.Memory.MaxKeys = int(n)
		}
	}
}

func defaultRedis() *Redis {
	return &Redis{Mode: limiter.ModeSingle, Timeout: limiter.DefaultRedisTimeout, KeyPrefix: limiter.DefaultKeyPrefix}
}

var keyPrefix = regexp.MustCompile(`^[A-Za-z0-9:_-]{1,32}$`)

func (f fields) redis() *Redis {
	r := defaultRedis()
	f.choose("mode", storeModes, &r.Mode)
	want := redisURLs[r.Mode].want
	if v, ok := f.require("url", want); ok {
		if r.URL, ok = v.text(want); ok {
			if err := checkRedisURL(r.Mode, r.URL); err != nil {
				v.fail("%v", err)
			}
		}
	}
	f.length("timeout", "a length of time like 20ms", time.Millisecond, time.Minute, &r.Timeout)
	if v, ok := f.get("key_prefix"); ok {
		const want = "1 to 32 letters, digits, colons, underscores or hyphens"
		if r.KeyPrefix, ok = v.text(want); ok && !keyPrefix.MatchString(r.KeyPrefix) {
			v.fail("%s is no prefix, wanted %s", quote(r.KeyPrefix), want)
		}
	}
	return r
}

func (v value) storePolicy() rules.StorePolicy {
	i, _ := v.choice(storePolicies)
	return rules.StorePolicy(i)
}
