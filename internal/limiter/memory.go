package limiter

import (
	"context"
	"sync"
	"time"
)

// DefaultMaxKeys is how many buckets a memory store keeps unless told otherwise.
const DefaultMaxKeys = 1_000_000

// MemoryOptions bound a memory store and give it its clock.
type MemoryOptions struct {
	// MaxKeys is the most buckets that are kept at once: ≥ 1. 0 is DefaultMaxKeys.
	MaxKeys int
	// Now is the store's clock, read in whole milliseconds since the Unix epoch. nil is the wall clock of the moment at which
	// the store was made and the monotonic time since, so that a step of the wall clock neither frees nor locks a client.
	Now func() time.Time
}

// Memory keeps the buckets in this process. When it is full, a new bucket takes the place of another, in this order: one
// that has expired, one that is full again, the one asked longest ago that was not refused within its window, and only then
// the one asked longest ago of the refused. So a client over its limit is not forgotten because others send many keys.
type Memory struct {
	now     func() time.Time
	maxKeys int

	// One lock for all: a take holds it for about a microsecond, and a take of several hits must be atomic.
	mu        sync.Mutex
	entries   map[Key]*entry
	idle      list // not refused within their window when last asked, the one asked longest ago first
	lapsed    list // not asked since their refusal became a window old, in the order in which that was noticed
	refused   list // refused within their window, the one asked longest ago first
	full      list // full again, in the order in which that was noticed
	wheel     wheel
	evictions Evictions
	asked     []*entry // the entries of the take under way, and their buckets
	buckets   []bucket
}

// entry is one bucket and its places in the order of eviction and in time.
type entry struct {
	key    Key
	bucket bucket
	order  node // in idle, lapsed, refused or full
	due    node // in the wheel: when to see whether the refusal has lapsed, the bucket is full or has expired

	asked        int64 // when a hit last asked the bucket, ms
	fullAt       int64 // when the bucket is full if nothing more is spent, ms
	refusedUntil int64 // one window after the last refusal, ms; 0 without one, or once it has lapsed
	isFull       bool  // in the list full, and due when it expires
}

// NewMemory returns an empty store.
func NewMemory(o MemoryOptions) *Memory {
	m := &Memory{now: o.Now, maxKeys: o.MaxKeys, entries: make(map[Key]*entry)}
	if m.now == nil {
		start := time.Now()
		m.now = func() time.Time { return start.Add(time.Since(start)) }
	}
	if m.maxKeys <= 0 {
		m.maxKeys = DefaultMaxKeys
	}
	m.idle.init()
	m.lapsed.init()
	m.refused.init()
	m.full.init()
	m.wheel.init(m.now().UnixMilli())
	return m
}

// Name is what metrics call the store.
func (*Memory) Name() string { return "memory" }

// Keys is the number of buckets that are kept, of which some may have expired since the last take.
func (m *Memory) Keys() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

// Take implements Store. It never fails and never waits, so that ctx does not matter.
func (m *Memory) Take(_ context.Context, hits []Hit) ([]Decision, error) {
	decisions := make([]Decision, len(hits))
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixMilli()
	m.wheel.advance(now)
	m.sweep(now, sweepPerHit*len(hits))

	m.asked, m.buckets = m.asked[:0], m.buckets[:0]
	for i := range hits {
		e, b := m.find(&hits[i], now)
		m.asked, m.buckets = append(m.asked, e), append(m.buckets, b)
	}
	take(hits, m.buckets, now, decisions)
	for i := range hits {
		m.keep(&hits[i], m.asked[i], m.buckets[i], decisions[i].Allowed, now)
	}
	return decisions, nil
}

// find returns the hit's entry, nil if there is none, and its bucket, nil if the hit needs none.
func (m *Memory) find(h *Hit, now int64) (*entry, bucket) {
	if h.untouched() {
		return nil, nil
	}
	if e := m.entries[h.Key]; e != nil {
		if e.bucket.held().ends <= now { // not swept yet
			e.bucket = newBucket(h.Limit.Algorithm)
		}
		return e, e.bucket
	}
	return nil, newBucket(h.Limit.Algorithm)
}

// keep puts the bucket of a hit that was just decided where it belongs, if it holds anything. e is the bucket's entry if it
// had one before the take.
func (m *Memory) keep(h *Hit, e *entry, b bucket, allowed bool, now int64) {
	if b == nil || b.held().ends == 0 {
		return
	}
	if e == nil || m.entries[h.Key] != e { // new, or evicted by a hit before it in this very take
		e = m.add(h.Key, b, now)
	}
	l := h.Limit.law()
	e.asked, e.fullAt = now, max(b.full(l, now), b.held().ban)
	if !allowed {
		e.refusedUntil = max(now+l.window*l.tick, b.held().ban)
	}
	m.requeue(e, allowed, now)
}
