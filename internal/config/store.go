package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// The words of the file, in the order of the values.
var (
	storePolicies = []string{"allow", "deny", "local"}
	storeModes    = []string{"single"}
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
	return &Redis{Mode: "single", Timeout: limiter.DefaultRedisTimeout, KeyPrefix: limiter.DefaultKeyPrefix}
}

var keyPrefix = regexp.MustCompile(`^[A-Za-z0-9:_-]{1,32}$`)

func (f fields) redis() *Redis {
	r := defaultRedis()
	if v, ok := f.require("url", "a URL like redis://127.0.0.1:6379/0"); ok {
		if r.URL, ok = v.text("a URL like redis://127.0.0.1:6379/0"); ok {
			if err := checkRedisURL(r.URL); err != nil {
				v.fail("%v", err)
			}
		}
	}
	f.choose("mode", storeModes, &r.Mode)
	f.length("timeout", "a length of time like 20ms", time.Millisecond, time.Minute, &r.Timeout)
	if v, ok := f.get("key_prefix"); ok {
		const want = "1 to 32 letters, digits, colons, underscores or hyphens"
		if r.KeyPrefix, ok = v.text(want); ok && !keyPrefix.MatchString(r.KeyPrefix) {
			v.fail("%s is no prefix, wanted %s", quote(r.KeyPrefix), want)
		}
	}
	return r
}

// checkRedisURL says what is wrong with a Redis URL without repeating any of it: a password that is not escaped can be
// in any part, also as the name of an option, unless go-redis knows that.
func checkRedisURL(text string) error {
	u, err := url.Parse(text)
	const want = "wanted redis://[user:password@]host:port/db, rediss:// for TLS, or unix:///path/of/the.sock?db=0"
	switch {
	case err != nil:
		return errors.New("is no URL (is each special character of the password percent-encoded?), " + want)
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return errors.New("has another scheme, " + want)
	case u.Query().Has("addr") || u.Query().Has("master_name"):
		return errors.New("names a cluster or a sentinel, but the only mode is single: " + want)
	}
	options, err := url.ParseQuery(u.RawQuery)
	if _, wrong := redis.ParseURL(text); err != nil || wrong != nil {
		return errors.New("has a database number, path or option that go-redis does not take, " + want)
	}
	delete(options, "db")
	delete(options, "skip_verify")
	if len(options) > 0 {
		return fmt.Errorf("sets %s, which the daemon sets itself, wanted no options but db and skip_verify",
			strings.Join(slices.Sorted(maps.Keys(options)), ", "))
	}
	return nil
}

func (v value) storePolicy() rules.StorePolicy {
	i, _ := v.choice(storePolicies)
	return rules.StorePolicy(i)
}
