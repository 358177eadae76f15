package authz

import (
	"fmt"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

const (
	// watchedRequests is how many HTTP requests a header that rules read may be missing from before that is worth a warning.
	watchedRequests = 10_000
	// mostReaders is how many of the rules that read a header a warning names.
	mostReaders = 10
)

// unseen are the headers that the rules in force read and that no request had so far, be it that clients do not send them or
// that Envoy is told to keep them back. The first requests alone are looked at.
type unseen struct {
	// over says that there is nothing more to look for, so that every later request costs the reading of it.
	over atomic.Bool

	headers map[string]*atomic.Bool // false while unseen
	left    atomic.Int64            // how many are unseen
	looks   atomic.Int64            // how many more requests are looked at
}

// watch begins to look for the headers of the names; those that were seen before are not looked for again.
func (u *unseen) watch(names []string, before *ruleset, requests int64) {
	u.headers = make(map[string]*atomic.Bool, len(names))
	for _, name := range names {
		seen := new(atomic.Bool)
		if before != nil && before.unseen.headers[name] != nil {
			seen.Store(before.unseen.headers[name].Load())
		}
		if u.headers[name] = seen; !seen.Load() {
			u.left.Add(1)
		}
	}
	u.looks.Store(requests)
	u.over.Store(u.left.Load() == 0)
}

// look notes the headers that an HTTP request has. It is true once: after the last request that is looked at, if headers are
// missing then.
func (u *unseen) look(r *rules.Request) (missing bool) {
	if u.over.Load() || !r.HTTP {
		return false
	}
	for i := range r.Headers {
		if seen := u.headers[r.Headers[i].Name]; seen != nil && seen.CompareAndSwap(false, true) && u.left.Add(-1) == 0 {
			u.over.Store(true)
			return false
		}
	}
	if u.looks.Add(-1) != 0 { // each has noted its headers before it counts
		return false
	}
	u.over.Store(true)
	return u.left.Load() > 0
}

// missing returns the names of the headers that were in none of the requests that were looked at; none before all are.
func (u *unseen) missing() (names []string) {
	if u.looks.Load() > 0 {
		return nil
	}
	for name, seen := range u.headers {
		if !seen.Load() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// warnUnseen says which headers rules read in vain.
func (s *Server) warnUnseen(set *ruleset) {
	readers := set.Rules.Readers()
	for _, header := range set.unseen.missing() {
		by := readers[header]
		if more := len(by) - mostReaders; more > 1 {
			by = append(slices.Clone(by[:mostReaders]), fmt.Sprintf("and %d more", more))
		}
		s.log.Warn("a header that rules read was in none of the first requests since the rules were loaded: if clients do send it, "+
			"add it to allowed_headers in Envoy's ext_authz filter; if they seldom do, all is well",
			zap.String("header", header), zap.Strings("read_by", by), zap.Int64("requests", s.watched))
	}
}
