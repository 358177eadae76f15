package limiter

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// shared is a command that carries several takes. One call of the script costs Redis nearly as much as what it decides.
type shared struct {
	command
	calls []*call
	eval  bool // with the script's text
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

// retry returns what is to be sent once more, of a command that Redis has refused before it ran anything, so that nothing is
// counted twice: with the script, which it has forgotten; or each call for itself, because the slot is being moved and not all
// buckets are here. It is nil if the reply stands, or nobody waits for another.
func (s *shared) retry() []*shared {
	err := s.reply.Err()
	if err == nil || !s.wanted() {
		return nil
	}
	switch {
	case redis.HasErrorPrefix(err, "NOSCRIPT"):
		s.eval = true
		return []*shared{s}
	case isHalfMoved(err) && len(s.calls) > 1:
		alone := make([]*shared, len(s.calls))
		for i, c := range s.calls {
			alone[i] = &shared{command: c.command, calls: []*call{c}}
		}
		return alone
	}
	return nil
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
