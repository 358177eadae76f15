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
		dst = addCommand(dst, false, c)
	}
	return dst
}

// addCommand adds one that carries these calls, and uses the memory of one that stood there before.
func addCommand(dst []shared, eval bool, calls ...*call) []shared {
	n := len(dst)
	if n < cap(dst) {
		dst = dst[:n+1]
	} else {
		dst = append(dst, shared{})
	}
	dst[n] = shared{calls: append(dst[n].calls[:0], calls...), eval: eval}
	return dst
}

// buckets is how many buckets the calls have together.
func (s *shared) buckets() (n int) {
	for _, c := range s.calls {
		n += c.buckets
	}
	return n
}

// appendTo appends the command as Redis reads it.
func (s *shared) appendTo(dst []byte) []byte {
	first := s.calls[0]
	if first.asking {
		dst = append(dst, "*1\r\n$6\r\nASKING\r\n"...)
	}
	keys, packed := s.buckets(), 0
	for _, c := range s.calls {
		packed += len(c.packed)
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
		return addCommand(dst, true, s.calls...)
	case isHalfMoved(err) && len(s.calls) > 1:
		for _, c := range s.calls {
			dst = addCommand(dst, false, c)
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
	if len(s.calls) > 1 && err == nil && len(reply) != 2*s.buckets() {
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
