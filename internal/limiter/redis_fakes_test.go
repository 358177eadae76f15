package limiter

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load sends takes from n callers for as long as it runs, a take of each every 5 ms or when the last has ended.
type load struct {
	cancel  context.CancelFunc
	callers sync.WaitGroup

	mu      sync.Mutex
	reasons map[string]int // by ErrorReason, "" for takes that were decided
	slowest time.Duration
}

func startLoad(s Store, n int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel}
	l.reset()
	for i := range n {
		h := hitOf(uint64(i), limitOf(SlidingCounter, 1_000_000, time.Hour), 1)
		l.callers.Go(func() {
			pace := time.NewTicker(5 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				start := time.Now()
				_, err := s.Take(context.Background(), []Hit{h})
				l.count(ErrorReason(err), time.Since(start))
				<-pace.C
			}
		})
	}
	return l
}

func (l *load) count(reason string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons[reason]++
	l.slowest = max(l.slowest, took)
}

// reset forgets what happened so far and returns it.
func (l *load) reset() (reasons map[string]int, slowest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	reasons, slowest = l.reasons, l.slowest
	l.reasons, l.slowest = make(map[string]int), 0
	return reasons, slowest
}

func (l *load) stop() {
	l.cancel()
	l.callers.Wait()
}

// proxy passes connections on until it forgets them.
type proxy struct {
	listener net.Listener
	delay    time.Duration // of everything that the server sends
	made     atomic.Int64  // connections so far
	mu       sync.Mutex
	halves   []net.Conn // the connections to the server
	clients  []net.Conn
}

func startProxy(t *testing.T, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l}
	t.Cleanup(func() {
		_ = l.Close()
		p.forget()
		for _, c := range p.clients {
			_ = c.Close()
		}
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			half, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.made.Add(1)
			p.mu.Lock()
			p.halves, p.clients = append(p.halves, half), append(p.clients, client)
			p.mu.Unlock()
			go func() { _, _ = io.Copy(half, client) }()
			go p.answer(client, half)
		}
	}()
	return p
}

// answer passes on what the server sends.
func (p *proxy) answer(client, server net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		time.Sleep(p.delay)
		_, _ = client.Write(buffer[:n])
	}
}

// cut closes the connections on both sides.
func (p *proxy) cut() {
	p.forget()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		_ = c.Close()
	}
	p.clients = nil
}

// forget drops the connections to the server and leaves those of the clients open.
func (p *proxy) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.halves {
		_ = c.Close()
	}
	p.halves = nil
}

// fakeRedis answers each hit in a call of the script with that reply, the probe with what it wants and all else with OK. It
// returns its address. It is busy with each hit for that long, with one at a time.
func fakeRedis(t *testing.T, reply string, busy time.Duration) string {
	var mu sync.Mutex
	var free time.Time // when the calls so far are done
	work := func() {
		mu.Lock()
		if now := time.Now(); free.Before(now) {
			free = now
		}
		free = free.Add(busy)
		done := free
		mu.Unlock()
		time.Sleep(time.Until(done))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					words, err := readCommand(in)
					if err != nil {
						return
					}
					answer := "+OK"
					switch {
					case words[0] == "hello":
						answer = "-ERR unknown command"
					case strings.HasPrefix(words[0], "eval") && strings.HasSuffix(words[3], base64.RawURLEncoding.EncodeToString(probed.Key[:])):
						answer = "*2\r\n:1\r\n:0"
					case strings.HasPrefix(words[0], "eval"):
						hits, _ := strconv.Atoi(words[2])
						for range hits {
							work()
						}
						answer = reply
						if each, ok := strings.CutPrefix(reply, "*2"); ok {
							answer = fmt.Sprintf("*%d%s", 2*hits, strings.Repeat(each, hits))
						}
					}
					fmt.Fprintf(c, "%s\r\n", answer)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// readCommand reads one command: its name in lower case, and the words behind it.
func readCommand(in *bufio.Reader) (words []string, err error) {
	number := func(mark string) int {
		line, readErr := in.ReadString('\n')
		n, parseErr := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), mark))
		err = errors.Join(err, readErr, parseErr)
		return n
	}
	for n := number("*"); n > 0 && err == nil; n-- {
		word := make([]byte, number("$")+2)
		_, readErr := io.ReadFull(in, word)
		err = errors.Join(err, readErr)
		words = append(words, strings.TrimSpace(string(word)))
	}
	if err == nil {
		words[0] = strings.ToLower(words[0])
	}
	return words, err
}
