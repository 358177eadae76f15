package limiter

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"time"
)

// link is the connection of a lane, in RESP2. The client has made it and said who we are; the calls of scripts go past the client,
// whose pipeline costs more than the rest of a take, and cannot go on with a reply that was late.
type link struct {
	conn    net.Conn
	out     []byte // commands that are not sent yet
	in      []byte // what was received
	read    int    // so much of that was given out
	numbers []int64
}

// maxNumbers bounds the numbers of a reply: there are two for each hit.
const maxNumbers = 1 << 20

// send sends what is queued. After an error that is os.ErrDeadlineExceeded it can be called again, to send the rest.
func (k *link) send() error {
	if len(k.out) == 0 { // of a batch whose replies alone are missing
		return nil
	}
	n, err := k.conn.Write(k.out)
	k.out = k.out[:copy(k.out, k.out[n:])]
	return err
}

// sendUntil and receiveUntil set when waiting for the server ends. What they cannot do, the next use tells. That a message is
// written in part only is the end of a connection by TLS, so that time to write must never lack.
func (k *link) sendUntil(deadline time.Time)    { _ = k.conn.SetWriteDeadline(deadline) }
func (k *link) receiveUntil(deadline time.Time) { _ = k.conn.SetReadDeadline(deadline) }

// reply returns the next reply: the numbers of an array, which are good until the next call, or the errorReply or statusReply
// that came instead. Any other error is one of the connection; after os.ErrDeadlineExceeded it can be called again.
func (k *link) reply() (numbers []int64, err error) {
	for {
		size, numbers, err := parseReply(k.in[k.read:], k.numbers[:0])
		if size > 0 || err != nil {
			k.read, k.numbers = k.read+size, numbers
			return numbers, err
		}
		if err := k.receive(); err != nil {
			return nil, err
		}
	}
}

// receive waits for more.
func (k *link) receive() error {
	if k.read > 0 {
		k.in, k.read = k.in[:copy(k.in, k.in[k.read:])], 0
	}
	if len(k.in) == cap(k.in) {
		k.in = append(make([]byte, 0, max(4096, 2*cap(k.in))), k.in...)
	}
	n, err := k.conn.Read(k.in[len(k.in):cap(k.in)])
	k.in = k.in[:len(k.in)+n]
	if n > 0 {
		return nil
	}
	return err
}

// errorReply is an error that Redis replied, or that stands for one.
type errorReply string

func (e errorReply) Error() string { return string(e) }

// RedisError makes it what go-redis takes for an error reply.
func (errorReply) RedisError() {}

// statusReply is a reply in one word.
type statusReply string

func (s statusReply) Error() string { return fmt.Sprintf("redis replied %q", string(s)) }

// parseReply reads the reply at the beginning of the text and appends its numbers. It returns its size, 0 if it is not all there.
func parseReply(text []byte, dst []int64) (size int, numbers []int64, err error) {
	mark, rest, size := cutLine(text)
	switch {
	case size == 0:
		return 0, dst, nil
	case mark == '-':
		return size, dst, errorReply(rest)
	case mark == '+':
		return size, dst, statusReply(rest)
	case mark != '*':
		return 0, dst, fmt.Errorf("redis replied %.20q, which is no array", text[:size])
	}
	count, ok := parseNumber(rest)
	if !ok || count < 0 || count > maxNumbers {
		return 0, dst, fmt.Errorf("redis replied an array of %.20q", rest)
	}
	for range count {
		mark, rest, n := cutLine(text[size:])
		if n == 0 {
			return 0, dst, nil
		}
		number, ok := parseNumber(rest)
		if mark != ':' || !ok {
			return 0, dst, fmt.Errorf("redis replied an array with %.20q", text[size:size+n])
		}
		dst, size = append(dst, number), size+n
	}
	return size, dst, nil
}

// cutLine returns the first character of the line at the beginning of the text, 0 where there is none, the rest of it, and the
// size of all with the end of the line; 0 if that has not come yet.
func cutLine(text []byte) (mark byte, rest []byte, size int) {
	end := bytes.IndexByte(text, '\n')
	if end < 2 {
		return 0, nil, end + 1
	}
	return text[0], text[1 : end-1], end + 1
}

func parseNumber(text []byte) (n int64, ok bool) {
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}

// appendHead appends a line of RESP that announces so many things.
func appendHead(dst []byte, mark byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, mark), int64(n), 10), '\r', '\n')
}

// appendWord appends a word of a command.
func appendWord[T string | []byte](dst []byte, word T) []byte {
	return append(append(appendHead(dst, '$', len(word)), word...), '\r', '\n')
}
