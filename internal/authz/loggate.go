package authz

import (
	"sync/atomic"
	"time"
)

// logGate lets one log line through in a minute, so that requests cannot fill the disk. The zero value is open.
type logGate struct {
	next atomic.Int64 // Unix time in ns from which the gate is open again
}

// open reports whether a line may be logged now, and closes the gate for a minute if so.
func (g *logGate) open(now time.Time) bool {
	next := g.next.Load()
	return now.UnixNano() >= next && g.next.CompareAndSwap(next, now.Add(time.Minute).UnixNano())
}
