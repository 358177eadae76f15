package limiter

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"
)

// giveBackTime is how long giving back may last, whatever is left of the take's own budget.
const giveBackTime = time.Second

// part is those hits of a take that one call can reach.
type part struct {
	slot uint16
	hits []int // their places in the take
	at   int64 // once they were spent: when, in ms since the Unix epoch by the clock of their server
}

// bySlot parts the hits by slot.
func bySlot(hits []Hit) []part {
	var parts []part
	for i, h := range hits {
		slot := slotOf(h.Tag)
		at := slices.IndexFunc(parts, func(p part) bool { return p.slot == slot })
		if at < 0 {
			at, parts = len(parts), append(parts, part{slot: slot})
		}
		parts[at].hits = append(parts[at].hits, i)
	}
	return parts
}

// apart has one hit in each part: while a slot moves, no call may reach two.
func (p part) apart() []part {
	parts := make([]part, len(p.hits))
	for i, hit := range p.hits {
		parts[i] = part{slot: p.slot, hits: []int{hit}, at: p.at}
	}
	return parts
}

// spread is a take whose buckets no single call can reach. All are asked first, at once, and nothing is spent if one refuses.
// Else part after part is taken, and what was taken is given back when a later one refuses after all. So it may refuse a
// moment too early in a race, but it never admits too many.
type spread struct {
	store    *Redis
	hits     []Hit
	deadline time.Time
	// asked has what the hits were told when they were asked, with nothing spent but by shadow hits; decisions what they
	// are told in the end.
	asked, decisions []Decision
}

// spread decides a take of several parts.
func (s *Redis) spread(hits []Hit, parts []part, deadline time.Time) ([]Decision, error) {
	t := &spread{store: s, hits: slices.Clone(hits), deadline: deadline} // giving back may outlast the take
	t.asked, t.decisions = make([]Decision, len(hits)), make([]Decision, len(hits))
	parts, err := t.askAll(parts)
	copy(t.decisions, t.asked)
	if err == nil && !t.refused() {
		parts, err = t.takeAll(parts)
	}
	if err != nil {
		return nil, err
	}
	if t.refused() {
		t.settle(parts)
	}
	return t.decisions, nil
}

// refused reports whether an enforced hit was refused.
func (t *spread) refused() bool {
	for i, d := range t.decisions {
		if !d.Allowed && !t.hits[i].Shadow {
			return true
		}
	}
	return false
}

// askAll asks the parts at the same time; shadow hits are taken with that. It returns the parts as they could be asked.
func (t *spread) askAll(parts []part) ([]part, error) {
	return t.each(parts, func(p part) error {
		hits := t.of(p)
		for i := range hits {
			hits[i].CountDenied = hits[i].CountDenied && hits[i].Shadow // the others are not spent yet
		}
		decisions, _, err := t.store.runDriver(p.slot, hits, words{ask: true}, t.deadline)
		refused := false
		for i, d := range decisions {
			t.asked[p.hits[i]] = d
			refused = refused || !d.Allowed && !t.hits[p.hits[i]].Shadow
		}
		if !refused { // the driver has told what would be left
			for _, i := range p.hits {
				t.asked[i] = unspent(t.hits[i], t.asked[i])
			}
		}
		return err
	})
}

// unspent is what a hit that was told what it would leave leaves when it is not spent.
func unspent(h Hit, d Decision) Decision {
	if !d.Allowed || h.Shadow {
		return d
	}
	d.Remaining = uint32(min(uint64(d.Remaining)+uint64(h.Cost), uint64(h.Limit.Capacity())))
	if d.Remaining == h.Limit.Capacity() {
		d.ResetAfter = 0
	}
	return d
}

// takeAll takes the enforced hits of part after part. When one refuses, those before it are given back, also what is counted
// whoever refuses, and it returns the others, to be settled. What a take has spent that got no answer is not known, and stays.
func (t *spread) takeAll(parts []part) (others []part, err error) {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].hits = slices.DeleteFunc(slices.Clone(parts[i].hits), func(hit int) bool { return t.hits[hit].Shadow })
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return len(p.hits) == 0 })
	slices.SortStableFunc(parts, t.order)
	for i := 0; i < len(parts); i++ {
		p := &parts[i]
		var decisions []Decision
		decisions, p.at, err = t.store.runDriver(p.slot, t.of(*p), words{dated: true}, t.deadline)
		switch {
		case isHalfMoved(err) && len(p.hits) > 1:
			parts = slices.Replace(parts, i, i+1, p.apart()...)
			i--
			continue
		case err != nil:
			t.giveBack(parts[:i])
			return nil, err
		}
		for j, d := range decisions {
			t.decisions[p.hits[j]] = d
		}
		if t.refused() {
			t.giveBack(parts[:i])
			others = slices.Delete(parts, i, i+1)
			for _, p := range others {
				for _, hit := range p.hits {
					t.decisions[hit] = t.asked[hit]
				}
			}
			return others, nil
		}
	}
	return nil, nil
}

// order is the order in which parts are taken: the least quota first, because it refuses most, and parts that can ban last,
// so that none bans a client whom another part would have refused.
func (t *spread) order(a, b part) int {
	rank := func(p part) (bans int, least uint32) {
		least = math.MaxUint32
		for _, hit := range p.hits {
			least = min(least, t.hits[hit].Limit.Quota)
			if t.hits[hit].Ban > 0 {
				bans = 1
			}
		}
		return bans, least
	}
	aBans, aLeast := rank(a)
	bBans, bLeast := rank(b)
	return cmp.Or(cmp.Compare(aBans, bBans), cmp.Compare(aLeast, bLeast))
}

// giveBack gives back what the parts have spent. It returns when that is done or the take's budget is over, and goes on in
// the background then.
func (t *spread) giveBack(parts []part) {
	deadline := time.Now().Add(giveBackTime)
	done := make(chan struct{})
	go func() {
		_, _ = t.each(parts, func(p part) error { // what cannot be given back makes the buckets refuse too early, no more
			hits := t.of(p)
			for i := range hits {
				hits[i].Limit.Quota = max(hits[i].Limit.Quota, hits[i].Fastest)
			}
			w := words{spentAt: strconv.FormatInt(p.at, 10)}
			c, now := newCall(), time.Now()
			defer c.free()
			t.store.command(&c.command, giveBack, p.slot, hits, w, now)
			return t.store.run(c, now, deadline)
		})
		close(done)
	}()
	late := time.NewTimer(time.Until(t.deadline))
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// noPassage makes the driver refuse a take that holds it. It touches no bucket.
var noPassage = Limit{Algorithm: FixedWindow, Window: time.Second}

// settle lets those hits of a refused take spend and ban that do so whoever refuses: the driver is told the refusal with
// them.
func (t *spread) settle(parts []part) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !slices.ContainsFunc(p.hits, t.unsettled) })
	_, _ = t.each(parts, func(p part) error { // the refusal stands
		p.hits = slices.DeleteFunc(slices.Clone(p.hits), func(hit int) bool { return t.hits[hit].Shadow })
		hits := t.of(p)
		hits = append(hits, Hit{Key: hits[0].Key, Tag: hits[0].Tag, Limit: noPassage})
		decisions, _, err := t.store.runDriver(p.slot, hits, words{}, t.deadline)
		for i, hit := range p.hits {
			// A bucket that has got room since then does not undo its refusal.
			if err == nil && (t.decisions[hit].Allowed || !decisions[i].Allowed) {
				t.decisions[hit] = decisions[i]
			}
		}
		return err
	})
}

// unsettled reports whether a refusal of the take is something to the hit: it is counted, or begins a ban.
func (t *spread) unsettled(hit int) bool {
	h, d := t.hits[hit], t.decisions[hit]
	starts := h.Ban > 0 && !d.Allowed && d.BanLeft == 0 && !h.Limit.NeverPasses(h.Cost)
	return !h.Shadow && h.Cost > 0 && (h.CountDenied || starts)
}

// each does something with all parts at the same time, and with the hits of a part one by one where its slot is being moved.
// It returns the parts as they could be reached.
func (t *spread) each(parts []part, do func(part) error) (reached []part, err error) {
	errs, split := make([]error, len(parts)), make([][]part, len(parts))
	var all sync.WaitGroup
	for i, p := range parts {
		all.Go(func() {
			split[i], errs[i] = []part{p}, do(p)
			if isHalfMoved(errs[i]) && len(p.hits) > 1 {
				split[i], errs[i] = t.each(p.apart(), do)
			}
		})
	}
	all.Wait()
	return slices.Concat(split...), errors.Join(errs...)
}

// of returns the hits of a part.
func (t *spread) of(p part) []Hit {
	hits := make([]Hit, len(p.hits), len(p.hits)+1)
	for i, hit := range p.hits {
		hits[i] = t.hits[hit]
	}
	return hits
}
