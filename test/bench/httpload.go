package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
)

// browsers is how many connections lead from clients to an Envoy.
const browsers = 16

// Each request is for one of this many paths, and the same from a client's each address.
const manyPaths = 10_000

const likesPath = "/api/videos/00000/likes?region=gb&page=2"

// browser is a connection to an Envoy that sends the requests of a browser.
type browser struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	at      int  // where the digits in the path are
	limited bool // every answer must bear the limiter's headers
}

// openBrowser connects to an Envoy, from the n-th address of the loopback network.
func openBrowser(n int, addr string, limited bool) (*browser, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(n+1))}}
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	var request strings.Builder
	fmt.Fprintf(&request, "GET %s HTTP/1.1\r\nhost: api.example.com\r\n", likesPath)
	for _, h := range browserHeaders(likesPath) {
		if !strings.HasPrefix(h[0], ":") && !envoyAdds[h[0]] {
			fmt.Fprintf(&request, "%s: %s\r\n", h[0], h[1])
		}
	}
	request.WriteString("\r\n")
	return &browser{
		conn: conn, in: bufio.NewReaderSize(conn, 1<<14), request: []byte(request.String()),
		at: strings.Index(request.String(), "/00000/") + 1, limited: limited,
	}, nil
}

// envoyAdds are the headers that a browser does not send.
var envoyAdds = map[string]bool{
	"x-forwarded-for": true, "x-forwarded-proto": true, "x-envoy-external-address": true, "x-request-id": true,
}

// ask sends a request for some path and reads the answer.
func (b *browser) ask() (int, int, error) {
	digits := b.request[b.at : b.at+5]
	for i, n := len(digits)-1, rand.IntN(manyPaths); i >= 0; i, n = i-1, n/10 {
		digits[i] = byte('0' + n%10)
	}
	if _, err := b.conn.Write(b.request); err != nil {
		return 0, 0, err
	}
	code, err := b.read()
	switch {
	case err != nil:
		return 0, 0, err
	case code == "429":
		return 1, 1, nil
	case code != "200":
		return 0, 0, errors.New("Envoy answers " + code)
	}
	return 1, 0, nil
}

// read reads an answer.
func (b *browser) read() (code string, err error) {
	length, limited := 0, false
	for n := 0; ; n++ {
		line, err := b.in.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case n == 0:
			code = string(line[len("HTTP/1.1 "):][:3])
		case len(line) == 0:
			if b.limited && !limited {
				return "", errors.New("an answer without limits: Envoy has not asked, or got no answer")
			}
			_, err := b.in.Discard(length)
			return code, err
		case string(name) == "content-length":
			if length, err = strconv.Atoi(string(value)); err != nil {
				return "", err
			}
		case string(name) == "x-ratelimit-limit":
			limited = true
		}
	}
}

var okAnswer = []byte("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nok\n")

// serveUpstream answers every request on that address with 200, as cheaply as can be. It ends when the listener is closed.
func serveUpstream(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go answer(conn)
	}
}

func answer(conn io.ReadWriteCloser) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 1<<14)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) > 2 {
			continue // requests have no body: they end with an empty line
		}
		if _, err := conn.Write(okAnswer); err != nil {
			return
		}
	}
}
