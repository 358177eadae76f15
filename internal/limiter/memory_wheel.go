package limiter

import "math/bits"

// wheel tells when entries are due, in constant time for each. It has levels whose slots are each twice as long as those of
// the level below. An entry goes into the lowest level on which its time is within half a turn, and stays there until its
// slot comes: late by up to 1/16 of its delay, or 16 ms. Being late only delays a clean-up.
type wheel struct {
	now    int64 // ms, the latest that advance has seen
	levels [wheelLevels][wheelSlots]list
	due    list // entries whose time has come
}

const (
	wheelSlotBits = 4 // the shortest slot is 2^4 = 16 ms
	wheelSlots    = 64
	wheelLevels   = 31 // half a turn of the highest level is 2^(4+5+30) ms, 17 years; no bucket lives longer than 12
)

func (w *wheel) init(now int64) {
	w.now = now
	w.due.init()
	for i := range w.levels {
		for j := range w.levels[i] {
			w.levels[i][j].init()
		}
	}
}

// add makes the entry due at that time, in ms, instead of when it was due before.
func (w *wheel) add(e *entry, at int64) {
	if at <= w.now {
		w.due.moveBack(&e.due)
		return
	}
	slots := uint64(at-w.now) >> wheelSlotBits
	level := min(max(0, bits.Len64(slots)-bits.Len64(wheelSlots/2-1)), wheelLevels-1) // half a turn at most
	slot := at>>(wheelSlotBits+level) + 1
	w.levels[level][slot%wheelSlots].moveBack(&e.due)
}

// advance moves the entries whose time has come by now, in ms, to due. It never goes back.
func (w *wheel) advance(now int64) {
	for level := range w.levels {
		shift := wheelSlotBits + level
		from, to := w.now>>shift, now>>shift
		if from >= to {
			break
		}
		for slot := max(from+1, to-wheelSlots+1); slot <= to; slot++ {
			w.due.moveAllBack(&w.levels[level][slot%wheelSlots])
		}
	}
	w.now = max(w.now, now)
}
