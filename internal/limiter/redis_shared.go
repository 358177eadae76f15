package limiter

import (
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// shared is a command that carries several takes. One call of the script costs Redis nearly as much as what it decides.
type shared struct {
	calls []*call // not empty; the first says what all have in common
	eval  bool    // with the script's text
	asked bool    // the reply to ASKING is here, if there is one
}

// join makes as few commands of the calls as can be; each of them stays in its order. It appends them to dst.
func join(dst []shared, batch []*call) []shared {
next:
	for _, c := range batch {
		for i := range dst {
			if s := &dst[i]; s.calls[0].joins(&c.command) {
				s.calls = append(s.calls, c)
				continue next
			}
		}
		dst = addCommand(dst)
		last := &dst[len(dst)-1]
		last.calls = append(last.calls, c)
	}
	return dst
}

// addCommand adds one that carries nothing yet, and uses the memory of one that stood there before.
func addCommand(dst []shared) []shared {
	if len(dst) == cap(dst) {
		return append(dst, shared{})
	}
	dst = dst[:len(dst)+1]
	last := &dst[len(dst)-1]
	*last = shared{calls: last.calls[:0]}
	return dst
}

// appendTo appends the command as Redis reads it.
func (s *shared) appendTo(dst []byte) []byte {
	first := s.calls[0]
	if first.asking {
		dst = append(dst, "*1\r\n$6\r\nASKING\r\n"...)
	}
	keys, packed := 0, 0
	for _, c := range s.calls {
		keys, packed = keys+c.buckets, packed+len(c.packed)
	}
	dst = appendHead(dst, '*', 4+keys+len(first.last))
	if s.eval {
		dst = appendWord(appendWord(dst, "EVAL"), first.script.text)
	} else {
		dst = appendWord(appendWord(dst, "EVALSHA"), first.script.sha)
	}
	var number [20]byte
	dst = appendWord(dst, strconv.AppendInt(number[:0], int64(keys), 10))
	for _, c := range s.calls {
		dst = append(dst, c.keys...)
	}
	dst = appendHead(dst, '$', packed)
	for _, c := range s.calls {
		dst = append(dst, c.packed...)
	}
	dst = append(dst, '\r', '\n')
	for _, word := range first.last {
		dst = appendWord(dst, word)
	}
	return dst
}

// retry appends what is to be sent once more, of a command that Redis has refused before it ran anything, so that nothing is
// counted twice: with the script, which it has forgotten; or each call for itself, because the slot is being moved and not all
// buckets are here. It appends nothing if the reply stands, or nobody waits for another.
func (s *shared) retry(dst []shared, err error) []shared {
	if err == nil || !s.wanted() {
		return dst
	}
	switch {
	case redis.HasErrorPrefix(err, "NOSCRIPT") && !s.eval:
		dst = addCommand(dst)
		last := &dst[len(dst)-1]
		last.calls, last.eval = append(last.calls, s.calls...), true
	case isHalfMoved(err) && len(s.calls) > 1:
		for _, c := range s.calls {
			dst = addCommand(dst)
			last := &dst[len(dst)-1]
			last.calls = append(last.calls, c)
		}
	}
	return dst
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
func (s *shared) end(reply []int64, err error) (good bool) {
	keys := 0
	for _, c := range s.calls {
		keys += c.buckets
	}
	if len(s.calls) > 1 && err == nil && len(reply) != 2*keys {
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
		n := 2 * c.buckets
		err := failed(reply[:n])
		good = keepsConnection(err) && good
		c.end(reply[:n], err)
		reply = reply[n:]
	}
	return good
}
