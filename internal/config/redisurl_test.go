package config

import (
	"strings"
	"testing"
)

func TestAWrongRedisURLIsToldWhichPartIsWrongAndNoSecret(t *testing.T) {
	for _, c := range []struct{ mode, url, want string }{
		{"single", "redis://:s3cret@cache:6379 ", "holds white space, wanted redis://[user:password@]host:port/db"},
		{"single", "redis://:s3cret@cache:70000", "has a port outside of 1 to 65535"},
		{"single", "redis://:s3cret@cache:0", "has a port outside of 1 to 65535"},
		{"single", "redis://:s3cret@cache:port", "is no URL (is the port a number"},
		{"single", "redis://s3#cret@cache:6379", "is no URL (is the port a number"},
		{"single", "redis://:s3cret@cache:6379?db=%zz", "is no URL"},
		{"single", "redis://:s3cret@cache/s3cret", "has a path that is no database number"},
		{"single", "redis://:s3cret@cache/1/2", "has a path that is no database number"},
		{"single", "redis://:s3cret@cache/-1", "has a path that is no database number"},
		{"single", "redis://:s3cret@cache?db=s3cret", "has a db that is no database number"},
		{"single", "redis://:s3cret@cache?s3cret=1", "has an option that is not known, wanted no options but db, skip_verify"},
		{"single", "rediss://:s3cret@cache?skip_verfy=1", `has an option that is not known, did you mean "skip_verify"?`},
		{"single", "redis://:s3cret@cache?skip_verify=1", "goes with rediss:// alone"},
		{"single", "rediss://:s3cret@cache?skip_verify=s3cret", "neither true nor false"},
		{"single", "redis://cache?password=s3cret", "has the option password, which mode single does not take"},
		{"single", "redis://:s3cret@a:6379,b:6379", "names several servers with commas"},
		{"single", "redis://:s3,c/ret@cache:6379", "each special character of the password percent-encoded"},
		{"single", "unix://run/redis.sock", "has no path of a socket, which three slashes begin"},
		{"cluster", "redis://:s3cret@a,b", "names several servers with commas, where modes cluster and sentinel have ?addr=host:port"},
		{"cluster", "redis://:s3cret@a?adr=b:6379", `did you mean "addr"?`},
		{"cluster", "redis://:s3cret@a?addr=b:6379,c:6379", "names several servers in one addr"},
		{"cluster", "redis://:s3cret@a?addr=b", "has an addr that is not host:port"},
		{"cluster", "redis://:s3cret@a?addr=b:99999", "has an addr that is not host:port with a port from 1 to 65535"},
		{"cluster", "redis://:s3cret@a?db=1", "has the option db, which mode cluster does not take, wanted no options but addr"},
		{"sentinel", "redis://:s3cret@a:26379/x?master_name=main", "has a path that is no database number, wanted redis://host:port/db?master_name=name"},
		{"sentinel", "redis://:s3cret@a:26379?master=main", "names no master_name"},
	} {
		err := checkRedisURL(c.mode, c.url)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3") || strings.Contains(err.Error(), "go-redis") {
			t.Errorf("%s %s: %v, want %q", c.mode, c.url, err, c.want)
		}
	}
}

func TestEveryFormOfRedisURLIsTaken(t *testing.T) {
	for _, c := range []struct{ mode, url string }{
		{"single", "redis://cache"},
		{"single", "redis://user:p%40ss,word@[::1]:6379/3"},
		{"single", "rediss://:a@cache:6379/?skip_verify=true"},
		{"single", "unix:///run/redis.sock?db=2"},
		{"single", "unix://user:a@/run/redis.sock"},
		{"cluster", "rediss://user:a@a:7000/0?addr=b:7000&addr=[::1]:7000"},
		{"sentinel", "redis://:a@a:26379/2?master_name=main&addr=b:26379&username=u&password=p@,"},
	} {
		if err := checkRedisURL(c.mode, c.url); err != nil {
			t.Errorf("%s %s: %v", c.mode, c.url, err)
		}
	}
}
