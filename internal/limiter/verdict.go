package limiter

import "time"

// Reason says in one word why a request was refused or, if it was allowed, why no bucket was asked. It is a metric label
// and goes into Envoy's dynamic metadata.
type Reason string

// The reasons.
const (
	ReasonNone       Reason = ""            // allowed by the limits
	ReasonLimit      Reason = "limit"       // a bucket has too little left
	ReasonBan        Reason = "ban"         // a bucket is banned, since it has refused before
	ReasonLimitZero  Reason = "limit_zero"  // the limit is 0: nothing ever passes
	ReasonCost       Reason = "cost"        // the cost is above the limit and can never pass
	ReasonKeyMissing Reason = "key_missing" // a rule with on_missing_key: deny found a part of its key missing
	ReasonRule       Reason = "rule"        // a rule with an action of its own decided
	ReasonStore      Reason = "store"       // the store failed and its failure policy decided
)

// Verdict is the one answer that many decisions add up to. The zero value refuses for good.
type Verdict struct {
	Allowed bool
	Reason  Reason
	// Speaker is the index of the hit that the answer's single-valued headers speak for; −1 when there is none.
	Speaker int
	// RetryAfter is after when the request passes: the longest wait of the hits, Never if one of them can never pass; 0 when
	// allowed.
	RetryAfter time.Duration
}

// Judge folds the decisions on one request's hits into its verdict; shadow hits have no say. An allowed verdict speaks for
// the hit with the least share left, then the fewest left, then the earliest; a refused one for the longest wait, then the
// earliest. Without enforced hits the request is allowed.
func Judge(hits []Hit, decisions []Decision) Verdict {
	v := Verdict{Allowed: true, Speaker: -1}
	for i := range hits {
		if hits[i].Shadow {
			continue
		}
		switch d := decisions[i]; {
		case d.Skipped:
		case !d.Allowed && (v.Allowed || longer(d.RetryAfter, v.RetryAfter)):
			v = Verdict{Speaker: i, Reason: RefusalReason(hits[i], d), RetryAfter: d.RetryAfter}
		case d.Allowed && v.Allowed && (v.Speaker < 0 || scarcer(hits[i], d, hits[v.Speaker], decisions[v.Speaker])):
			v.Speaker = i
		}
	}
	for i := range hits { // a hit that was spent all the same may have to wait longer
		if !v.Allowed && !hits[i].Shadow && decisions[i].Allowed && longer(decisions[i].RetryAfter, v.RetryAfter) {
			v.RetryAfter = decisions[i].RetryAfter
		}
	}
	return v
}

// RefusalReason says why a bucket refused that hit.
func RefusalReason(h Hit, d Decision) Reason {
	switch {
	case d.BanLeft > 0:
		return ReasonBan
	case h.Limit.Quota == 0:
		return ReasonLimitZero
	case d.RetryAfter == Never:
		return ReasonCost
	}
	return ReasonLimit
}

// longer orders waits; Never is the longest.
func longer(a, b time.Duration) bool {
	return b != Never && (a == Never || a > b)
}

// scarcer reports whether bucket a has a smaller share of its capacity left than b, or as small a one and fewer units.
func scarcer(a Hit, da Decision, b Hit, db Decision) bool {
	left, right := uint64(da.Remaining)*uint64(b.Limit.Capacity()), uint64(db.Remaining)*uint64(a.Limit.Capacity())
	if left != right {
		return left < right
	}
	return da.Remaining < db.Remaining
}
