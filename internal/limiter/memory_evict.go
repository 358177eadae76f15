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

// How many entries that are due are seen to. Each hit makes at most three more: its bucket is new, is full again, and expires.
// So what is due never piles up, and no take is held up by it.
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

// requeue puts an entry whose bucket was just asked at the end of its list.
func (m *Memory) requeue(e *entry, now int64) {
	if e.fullAt > now && e.isFull {
		e.isFull = false
		m.wheel.add(e, e.fullAt)
	}
	switch {
	case e.isFull:
		m.full.moveBack(&e.order)
	case now < e.refusedUntil:
		m.refused.moveBack(&e.order)
	default:
		m.idle.moveBack(&e.order)
	}
}

// sweep sees to at most n of the entries that are due and reports whether one of them had expired and is gone.
func (m *Memory) sweep(now int64, n int) (dropped bool) {
	for ; n > 0; n-- {
		e := m.wheel.due.front()
		switch {
		case e == nil:
			return dropped
		case now >= e.bucket.expires():
			m.drop(e, &m.evictions.Expired)
			dropped = true
		case now >= e.fullAt:
			e.isFull = true
			m.full.moveBack(&e.order)
			m.wheel.add(e, e.bucket.expires())
		default:
			m.wheel.add(e, e.fullAt)
		}
	}
	return dropped
}

// evict forgets one bucket.
func (m *Memory) evict(now int64) {
	if m.sweep(now, sweepPerEviction) {
		return
	}
	if e := m.full.front(); e != nil {
		m.drop(e, &m.evictions.Full)
		return
	}
	refused := m.refused.front()
	if refused != nil && now >= refused.refusedUntil {
		m.drop(refused, &m.evictions.Idle)
		return
	}
	if e := m.idle.front(); e != nil {
		m.drop(e, &m.evictions.Idle)
		return
	}
	m.drop(refused, &m.evictions.Refused)
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
