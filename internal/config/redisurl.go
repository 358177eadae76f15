package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// redisURL is what the URL of Redis looks like in one mode.
type redisURL struct {
	want    string
	schemes []string
	options []string // that an operator may set
	parse   func(text string) error
}

// redisURLs has one for each of storeModes.
var redisURLs = map[string]redisURL{
	limiter.ModeSingle: {
		want:    "redis://[user:password@]host:port/db, rediss:// for TLS, or unix:///path/of/the.sock?db=0",
		schemes: []string{"redis", "rediss", "unix"},
		options: []string{"db", "skip_verify"},
		parse:   func(text string) error { _, err := redis.ParseURL(text); return err },
	},
	limiter.ModeCluster: {
		want:    "redis://[user:password@]host:port?addr=host:port&addr=host:port, or rediss:// for TLS",
		schemes: []string{"redis", "rediss"},
		options: []string{"addr"},
		parse:   func(text string) error { _, err := redis.ParseClusterURL(text); return err },
	},
	limiter.ModeSentinel: {
		want:    "redis://host:port/db?master_name=name&addr=host:port&addr=host:port, or rediss:// for TLS",
		schemes: []string{"redis", "rediss"},
		options: []string{"addr", "db", "master_name", "password", "skip_verify", "username"},
		parse:   func(text string) error { _, err := redis.ParseFailoverURL(text); return err },
	},
}

// checkRedisURL says what is wrong with a Redis URL without repeating any of it: a password that is not escaped can be
// in any part, also as the name of an option, unless go-redis knows that.
func checkRedisURL(mode, text string) error {
	form := redisURLs[mode]
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("is no URL (is each special character of the password percent-encoded?), wanted " + form.want)
	case !slices.Contains(form.schemes, u.Scheme):
		return fmt.Errorf("has another scheme than mode %s takes, wanted %s", mode, form.want)
	}
	if err := checkRedisMode(mode, u); err != nil {
		return fmt.Errorf("%w, wanted %s", err, form.want)
	}
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil || form.parse(text) != nil {
		return errors.New("has a database number, path or option that go-redis does not take, wanted " + form.want)
	}
	for _, option := range form.options {
		delete(options, option)
	}
	if len(options) > 0 {
		return fmt.Errorf("sets %s, which the daemon sets itself, wanted no options but %s",
			strings.Join(slices.Sorted(maps.Keys(options)), ", "), strings.Join(form.options, ", "))
	}
	return nil
}

// checkRedisMode finds a URL that is meant for another mode.
func checkRedisMode(mode string, u *url.URL) error {
	query := u.Query()
	switch {
	case mode != limiter.ModeSentinel && query.Has("master_name"):
		return fmt.Errorf("names a master for sentinels, but the mode is %s", mode)
	case mode == limiter.ModeSingle && query.Has("addr"):
		return errors.New("names further servers, but the mode is single")
	case mode == limiter.ModeCluster && strings.Trim(u.Path, "/") != "" && u.Path != "/0":
		return errors.New("names a database, but a cluster has one alone")
	case mode == limiter.ModeSentinel && query.Get("master_name") == "":
		return errors.New("names no master_name for the sentinels")
	}
	return nil
}
