package main

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// A gRPC server that is left as it is takes three of them for an attack, and closes the connection with a GOAWAY.
func TestPingsOnAnIdleConnectionAreAnswered(t *testing.T) { // ENVOY.md §4.5
	t.Parallel()
	conn, err := net.Dial("tcp", start(t, limits("5/1h")).listen)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(conn, http2.ClientPreface)
	must(t, err)
	frames := http2.NewFramer(conn, conn)
	must(t, frames.WriteSettings())
	spaced := time.NewTicker(2 * keepaliveMinTime)
	defer spaced.Stop()
	for n := byte(1); n <= 10; n++ {
		<-spaced.C
		must(t, frames.WritePing(false, [8]byte{n}))
		for answered := false; !answered; {
			frame, err := frames.ReadFrame()
			must(t, err)
			switch frame := frame.(type) {
			case *http2.GoAwayFrame:
				t.Fatalf("after %d pings: %v", n, frame)
			case *http2.PingFrame:
				answered = frame.IsAck() && frame.Data[0] == n
			}
		}
	}
}
