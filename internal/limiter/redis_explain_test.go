package limiter

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

func TestAnErrorReplyIsShortAndSaysWhichModeMayBeMeant(t *testing.T) {
	for _, c := range []struct{ mode, reply, want string }{
		{ModeSingle, "MOVED 866 b:7001", "connect: MOVED 866 b:7001 (this is a node of a Redis Cluster: is store.redis.mode: cluster meant?)"},
		{ModeSentinel, "MOVED 866 b:7001", "connect: MOVED 866 b:7001 (this is a node of a Redis Cluster: is store.redis.mode: cluster meant?)"},
		{ModeCluster, "MOVED 866 b:7001", "connect: MOVED 866 b:7001"},
		{ModeCluster, "ERR This instance has cluster support disabled",
			"connect: ERR This instance has cluster support disabled (this is no node of a Redis Cluster: is store.redis.mode: single or sentinel meant?)"},
		{ModeSingle, "ERR unknown command 'script', with args beginning with: 'load' 'local secret'",
			"connect: ERR unknown command 'script' (this seems to be a sentinel: is store.redis.mode: sentinel meant?)"},
		{ModeCluster, "ERR unknown command `cluster`, with args beginning with: `slots`, ",
			"connect: ERR unknown command `cluster` (this seems to be a sentinel: is store.redis.mode: sentinel meant?)"},
		{ModeSentinel, "ERR unknown command 'sentinel', with args beginning with: 'master'",
			"connect: ERR unknown command 'sentinel' (this is no sentinel: is store.redis.mode: single or the port of a sentinel meant?)"},
		{ModeSingle, "ERR " + strings.Repeat("é", 200), "connect: ERR " + strings.Repeat("é", 93) + "…"},
	} {
		err := explain(c.mode, fmt.Errorf("connect: %w", errorReply(c.reply)))
		if err.Error() != c.want {
			t.Errorf("%s: %q\nis told as %q\nwant       %q", c.mode, c.reply, err, c.want)
		}
		if reply := redis.Error(nil); !errors.As(err, &reply) || reply.Error() != c.reply {
			t.Errorf("%q is lost: %v", c.reply, reply)
		}
	}
}

func TestAServerForAnotherModeIsNamedAsTheCause(t *testing.T) {
	server := harness.Redis(t)
	for mode, want := range map[string]string{
		ModeCluster:  "is store.redis.mode: single or sentinel meant?",
		ModeSentinel: "is store.redis.mode: single or the port of a sentinel meant?",
	} {
		url := server.URL
		if mode == ModeSentinel {
			url += "?master_name=main"
		}
		s := newRedisStore(t, url, nil, withBudget, func(o *RedisOptions) { o.Mode = mode })
		if told := s.Trouble().Error(); !strings.Contains(told, server.Addr) || !strings.Contains(told, want) || strings.Contains(told, "\n") {
			t.Errorf("%s: the operator is told %s", mode, told)
		}
	}
}
