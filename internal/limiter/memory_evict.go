package limiter

// Evictions counts the buckets that a memory store has forgotten, by reason. Only Idle and Refused ones held anything that a
// client had spent.
type Evictions struct {
	Expired uint64 // their time was over; they go whether the room is needed or not
	Full    uint64 // full again, in favour of a new bucket
	Idle    uint64 // asked longest ago, in favour of a new bucket
	Refused uint64 // refused within their window: everything that is kept is in use
}

// Evictions returns how many buckets have been forgotten since the store was made.
func (m *Memory) Evictions() Evictions {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.evictions
}

// How many entries that are due are seen to. Each hit makes at most three more: its bucket is new, or due too early by now, or
// its refusal lapses; it is full again; and it expires. So what is due never piles up, and no take is held up by it.
const (
	sweepPerHit      = 4
	sweepPerEviction = 16
)

// add makes room for a bucket and takes it in.
func (m *Memory) add(k Key, b bucket, now int64) *entry {
	if len(m.entries) >= m.maxKeys {
		m.evict(now)
	}
	e := &entry{key: k, bucket: b}
	e.order.entry, e.due.entry = e, e
	m.wheel.due.moveBack(&e.due) // the next sweep sees when it is really due
	m.entries[k] = e
	return e
}

// requeue puts an entry whose bucket was just asked at the end of its list. A refusal may lapse before the entry is due, so it
// makes the entry due anew; after an allowed hit the next sweep that comes upon the entry does.
func (m *Memory) requeue(e *entry, allowed bool, now int64) {
	if now >= e.refusedUntil {
		e.refusedUntil = 0
	}
	if !allowed || e.isFull && e.fullAt > now {
		e.isFull = false
		m.wheel.add(e, e.changes())
	}
	switch {
	case e.isFull:
		m.full.moveBack(&e.order)
	case e.refusedUntil != 0:
		m.refused.moveBack(&e.order)
	default:
		m.idle.moveBack(&e.order)
	}
}

// changes is when an entry that is not in full belongs in another list if it is not asked again, in ms.
func (e *entry) changes() int64 {
	if e.refusedUntil != 0 {
		return min(e.refusedUntil, e.fullAt)
	}
	return e.fullAt
}

// lapse moves an entry from refused to lapsed if its refusal is a window old.
func (m *Memory) lapse(e *entry, now int64) {
	if e.refusedUntil != 0 && now >= e.refusedUntil {
		e.refusedUntil = 0
		m.lapsed.moveBack(&e.order)
	}
}

// sweep sees to at most n of the entries that are due and reports whether one of them had expired and is gone.
func (m *Memory) sweep(now int64, n int) (dropped bool) {
	for ; n > 0; n-- {
		e := m.wheel.due.front()
		switch {
		case e == nil:
			return dropped
		case now >= e.bucket.held().ends:
			m.drop(e, &m.evictions.Expired)
			dropped = true
		case e.isFull || now >= e.fullAt: // the clock may have stepped back behind fullAt
			e.isFull = true
			m.full.moveBack(&e.order)
			m.wheel.add(e, e.bucket.held().ends)
		default:
			m.lapse(e, now)
			m.wheel.add(e, e.changes())
		}
	}
	return dropped
}

// evict forgets one bucket. The first of lapsed need not be the one asked longest ago there, as windows differ; but no bucket of
// lapsed goes before one of idle that was asked earlier.
func (m *Memory) evict(now int64) {
	if m.sweep(now, sweepPerEviction) {
		return
	}
	if e := m.full.front(); e != nil {
		m.drop(e, &m.evictions.Full)
		return
	}
	if e := m.refused.front(); e != nil {
		m.lapse(e, now) // the wheel may be late
	}
	e, lapsed := m.idle.front(), m.lapsed.front()
	if e == nil || lapsed != nil && lapsed.asked < e.asked {
		e = lapsed
	}
	if e != nil {
		m.drop(e, &m.evictions.Idle)
		return
	}
	m.drop(m.refused.front(), &m.evictions.Refused)
}

func (m *Memory) drop(e *entry, reason *uint64) {
	e.order.unlink()
	e.due.unlink()
	delete(m.entries, e.key)
	*reason++
}

// node is an entry's place in one list.
type node struct {
	prev, next *node
	entry      *entry
}

// unlink takes the node out of the list it is in, if any.
func (n *node) unlink() {
	if n.next != nil {
		n.prev.next, n.next.prev = n.next, n.prev
		n.prev, n.next = nil, nil
	}
}

// list is a ring of nodes that starts and ends at root.
type list struct{ root node }

func (l *list) init() { l.root.prev, l.root.next = &l.root, &l.root }

// front returns the entry of the first node; nil if there is none.
func (l *list) front() *entry { return l.root.next.entry }

// moveBack takes the node out of its list and puts it at the end of this one.
func (l *list) moveBack(n *node) {
	n.unlink()
	n.prev, n.next = l.root.prev, &l.root
	n.prev.next, l.root.prev = n, n
}

// moveAllBack empties from into the end of this list.
func (l *list) moveAllBack(from *list) {
	first, last := from.root.next, from.root.prev
	if first == &from.root {
		return
	}
	from.init()
	first.prev, last.next = l.root.prev, &l.root
	first.prev.next, l.root.prev = first, last
}
