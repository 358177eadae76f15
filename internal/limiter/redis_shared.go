package limiter

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// shared is a command that carries several takes. One call of the script costs Redis nearly as much as what it decides.
type shared struct {
	command
	calls []*call
	reply *redis.IntSliceCmd
}

// join makes as few commands of the calls as can be; each of them stays in its order.
func join(batch []*call) []*shared {
	var all []*shared
next:
	for _, c := range batch {
		for _, s := range all {
			if s.joins(&c.command) {
				s.keys, s.packed = append(s.keys, c.keys...), append(s.packed, c.packed...)
				s.calls = append(s.calls, c)
				continue next
			}
		}
		all = append(all, &shared{command: c.command, calls: []*call{c}})
	}
	return all
}

// wanted reports whether somebody still waits.
func (s *shared) wanted() bool {
	now := time.Now()
	for _, c := range s.calls {
		if now.Before(c.deadline) {
			return true
		}
	}
	return false
}

// end answers the calls, and reports whether the connection is still good.
func (s *shared) end() (good bool) {
	reply, err := s.reply.Result()
	if len(s.calls) > 1 && err == nil && len(reply) != 2*len(s.keys) {
		err = errReply
	}
	if len(s.calls) == 1 || err != nil {
		for _, c := range s.calls {
			c.end(reply, err)
		}
		return keepsConnection(err)
	}
	good = true
	for _, c := range s.calls {
		n := 2 * len(c.keys)
		err := failed(reply[:n])
		good = keepsConnection(err) && good
		c.end(reply[:n:n], err)
		reply = reply[n:]
	}
	return good
}
