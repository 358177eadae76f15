package limiter

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// piece is a connection from which a reader comes.
type piece struct {
	net.Conn
	io.Reader
}

func (p piece) Read(b []byte) (int, error) { return p.Reader.Read(b) }

func TestRepliesAreReadHoweverTheyArrive(t *testing.T) {
	const text = "*2\r\n:99\r\n:-60000\r\n-OOM command not allowed\r\n+OK\r\n*0\r\n*3\r\n:1\r\n:22\r\n:1800000000000\r\n"
	want := []struct {
		numbers []int64
		err     error
	}{{[]int64{99, -60000}, nil}, {nil, errorReply("OOM command not allowed")}, {nil, statusReply("OK")}, {nil, nil}, {[]int64{1, 22, 1800000000000}, nil}}
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "with late ends": iotest.DataErrReader,
	} {
		k := link{conn: piece{Reader: cut(strings.NewReader(text))}}
		for i, w := range want {
			if numbers, err := k.reply(); err != w.err || !slices.Equal(numbers, w.numbers) {
				t.Errorf("%s: reply %d is %v, %v; want %v, %v", name, i, numbers, err, w.numbers, w.err)
			}
		}
	}
}

func TestWhatIsNoReplyIsAnError(t *testing.T) {
	for _, text := range []string{"\r\n", "\n", ":1\r\n", "$2\r\nab\r\n", "*-1\r\n", "*x\r\n", "*1048577\r\n", "*1\r\n$1\r\n1\r\n", "*1\r\n:\r\n",
		"*1\r\n:1.5\r\n", "*1\r\n:99999999999999999999\r\n", "*1\r\n\r\n"} {
		if size, numbers, err := parseReply([]byte(text), nil); err == nil || ErrorReason(err) != "other" {
			t.Errorf("%q: %d, %v, %v", text, size, numbers, err)
		}
	}
}

func FuzzReplies(f *testing.F) {
	f.Add([]byte("*2\r\n:99\r\n:-60000\r\n"))
	f.Add([]byte("-ERR x\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		size, numbers, err := parseReply(text, nil)
		if size > len(text) {
			t.Fatalf("%d bytes of %q", size, text)
		}
		if size == 0 {
			return
		}
		for n := range size { // a part of it is no other reply
			if part, _, partErr := parseReply(text[:n], nil); part != 0 || partErr != nil {
				t.Fatalf("%q begins with a reply of %d bytes, %v; all of it has %d, %v, %v", text, part, partErr, size, numbers, err)
			}
		}
	})
}

// The caller who carries a take himself leaves when its time is over. Who comes next must not get his reply, and the connection
// is not lost.
func TestAReplyThatComesTooLateIsNotTakenForTheNext(t *testing.T) {
	server := harness.Redis(t)
	s := newRedisStore(t, server.URL, nil, withBudget)
	awaitLanes(t, s)
	l := limitOf(SlidingLog, 1000, time.Minute)
	before := received(t, server)
	for round := range uint32(5) {
		server.Stop()
		if _, err := s.Take(t.Context(), []Hit{hitOf(1, l, 100)}); ErrorReason(err) != "timeout" {
			t.Fatalf("a take while Redis is stopped: %v", err)
		}
		server.Cont()
		expect(t, "another bucket", mustTake(t, s, hitOf(2, l, 1))[0], true, 999-round)
	}
	if d := mustTake(t, s, hitOf(1, l, 1))[0]; d.Remaining != 499 {
		t.Errorf("%+v: what came too late was spent all the same", d)
	}
	if n := received(t, server) - before; n > 5 { // the command itself asks over one
		t.Errorf("%d new connections", n)
	}
}

// Whoever carries takes when the connection breaks, each of them hears so at once.
func TestALostConnectionIsHeardOfBeforeTheBudgetIsOver(t *testing.T) {
	p := startProxy(t, harness.Redis(t).Addr)
	s := newRedisStore(t, "redis://"+p.listener.Addr().String(), nil, func(o *RedisOptions) { o.Timeout = 10 * time.Second })
	awaitLanes(t, s)
	p.cut()
	start := time.Now()
	if err := takeError(s); ErrorReason(err) != "connection" || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a take: %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it lasted %v", took)
	}
}
