package history

import "time"

// Exact is a limiter that knows the instant of every request: exact logs that are spent all or none. The zero value is not
// ready; NewExact makes one.
type Exact struct{ buckets map[string]*exactLog }

// Hit is what one request asks of one bucket. A bucket's window never changes.
type Hit struct {
	Bucket string
	Window time.Duration
	Quota  uint32
	Units  uint32 // ≥ 1
}

// exactLog is what passed of a bucket, and how much of it is still in the window.
type exactLog struct {
	passed []Admission // the oldest first
	units  uint32
}

// NewExact returns a limiter whose buckets are all full.
func NewExact() *Exact { return &Exact{buckets: make(map[string]*exactLog)} }

// Take decides the hits of one request and spends them if all pass. The instants of all takes must not decrease.
func (e *Exact) Take(at time.Duration, hits []Hit) bool {
	for _, h := range hits {
		l := e.buckets[h.Bucket]
		if l == nil {
			l = new(exactLog)
			e.buckets[h.Bucket] = l
		}
		for len(l.passed) > 0 && at-l.passed[0].Sent >= h.Window {
			l.units -= l.passed[0].Units
			l.passed = l.passed[1:]
		}
		if l.units+h.Units > h.Quota {
			return false
		}
	}
	for _, h := range hits {
		l := e.buckets[h.Bucket]
		l.passed = append(l.passed, Admission{Sent: at, Units: h.Units})
		l.units += h.Units
	}
	return true
}
