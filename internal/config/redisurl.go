package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
var redisURLs = map[string]*redisURL{
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
// in any part, also as the name of an option, unless that name is a known one.
func checkRedisURL(mode, text string) error {
	form := redisURLs[mode]
	u, err := parseRedisURL(text)
	if err == nil && !slices.Contains(form.schemes, u.Scheme) {
		err = fmt.Errorf("has another scheme than mode %s takes", mode)
	}
	if err == nil {
		err = cmp.Or(checkRedisMode(mode, u), checkRedisServers(u), checkRedisDatabase(u))
	}
	if err != nil {
		return fmt.Errorf("%w, wanted %s", err, form.want)
	}
	if err := form.checkOptions(mode, u); err != nil {
		return fmt.Errorf("%w, wanted no options but %s", err, strings.Join(form.options, ", "))
	}
	if form.parse(text) != nil {
		return errors.New("has a part that does not belong there, wanted " + form.want)
	}
	return nil
}

// parseRedisURL takes the URL apart.
func parseRedisURL(text string) (*url.URL, error) {
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return nil, errors.New("holds white space")
	}
	if commaInHost(text) {
		return nil, errors.New("names several servers with commas, where modes cluster and sentinel have ?addr=host:port&addr=host:port")
	}
	u, err := url.Parse(text)
	if err == nil {
		_, err = url.ParseQuery(u.RawQuery)
	}
	if err != nil || u.Fragment != "" {
		return nil, errors.New("is no URL (is the port a number, and each special character of the password percent-encoded?)")
	}
	return u, nil
}

// commaInHost finds a comma between user and path, also where the whole is no URL.
func commaInHost(text string) bool {
	_, rest, _ := strings.Cut(text, "://")
	host := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		host = rest[:end]
	}
	if strings.Contains(rest[len(host):], "@") { // it may be a part of a password that is not escaped
		return false
	}
	return strings.Contains(host[strings.LastIndex(host, "@")+1:], ",")
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

// checkRedisServers finds what is no address.
func checkRedisServers(u *url.URL) error {
	if u.Scheme == "unix" {
		if u.Host != "" || strings.Trim(u.Path, "/") == "" {
			return errors.New("has no path of a socket, which three slashes begin")
		}
		return nil
	}
	if port := u.Port(); port != "" && !isPort(port) {
		return errors.New("has a port outside of 1 to 65535")
	}
	for _, addr := range u.Query()["addr"] {
		if strings.Contains(addr, ",") {
			return errors.New("names several servers in one addr, where each has its own")
		}
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || !isPort(port) {
			return errors.New("has an addr that is not host:port with a port from 1 to 65535")
		}
	}
	return nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// checkRedisDatabase finds a database that is no number.
func checkRedisDatabase(u *url.URL) error {
	if path := strings.Trim(u.Path, "/"); u.Scheme != "unix" && path != "" && !isDatabase(path) {
		return errors.New("has a path that is no database number")
	}
	if dbs := u.Query()["db"]; !all(dbs, isDatabase) {
		return errors.New("has a db that is no database number")
	}
	return nil
}

func isDatabase(text string) bool {
	_, err := strconv.ParseUint(text, 10, 31)
	return err == nil
}

// checkOptions finds an option that an operator may not set, and names it if it is a known one or near to one.
func (form *redisURL) checkOptions(mode string, u *url.URL) error {
	query := u.Query()
	var own []string
	for _, option := range slices.Sorted(maps.Keys(query)) {
		switch {
		case slices.Contains(form.options, option):
		case isRedisOption(option):
			return fmt.Errorf("has the option %s, which mode %s does not take", option, mode)
		case form.knows(option):
			own = append(own, option)
		default:
			return errors.New("has an option that is not known" + didYouMean(nearest(option, form.options)))
		}
	}
	if own != nil {
		return fmt.Errorf("sets %s, which the daemon sets itself", strings.Join(own, ", "))
	}
	verify := query["skip_verify"]
	switch {
	case verify != nil && u.Scheme != "rediss":
		return errors.New("has the option skip_verify, which goes with rediss:// alone")
	case !all(verify, func(v string) bool { return slices.Contains([]string{"true", "false", "1", "0"}, v) }):
		return errors.New("has a skip_verify that is neither true nor false")
	}
	return nil
}

// isRedisOption reports whether an operator may set the option in some mode.
func isRedisOption(name string) bool {
	for _, form := range redisURLs {
		if slices.Contains(form.options, name) {
			return true
		}
	}
	return false
}

// knows reports whether the Redis client has an option of that name.
func (form *redisURL) knows(name string) bool {
	return form.parse("redis://localhost?"+url.Values{name: {"0"}}.Encode()) == nil
}

func all(texts []string, hold func(text string) bool) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !hold(text) })
}
