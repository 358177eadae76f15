package limiter

import (
	"context"
	"time"
)

// Key names one bucket. It is a 128-bit hash of the rule's name, the algorithm, the tick and the values of the rule's key,
// never of the limit's numbers, so that a changed number finds its bucket again.
type Key [16]byte

// Hit is what one request asks of one rule's bucket.
type Hit struct {
	// Rule is the rule's name.
	Rule string
	// Key names the bucket. No two hits of one take share it.
	Key Key
	// Limit is the law under which the bucket is asked.
	Limit Limit
	// Cost is how many units the hit spends: 0 … 2^32−1 (MaxSlidingLogCost for SlidingLog). 0 asks whether one more unit
	// would pass and spends nothing.
	Cost uint32
	// Shadow hits are decided and spent on their own; they neither refuse the others nor are held back by them.
	Shadow bool
	// CountDenied hits are spent whoever refuses the take, but never beyond a full bucket; a log then keeps the newest units.
	CountDenied bool
	// Ban is for how long the bucket refuses every hit once it has refused this one: 0 … MaxBan, whole milliseconds. Only an
	// enforced hit that spends something starts a ban, and nothing prolongs one. 0 neither bans nor heeds a ban.
	Ban time.Duration
	// Fastest is the largest quota under which other hits spend from the bucket, where that is above the Limit's own: what was
	// spent from a token bucket may have refilled so fast when it is given back. 0 is none.
	Fastest uint32
	// Tag decides where in a Redis Cluster the bucket lies: buckets of one tag lie together. It is a part of the bucket's
	// name there, and unused elsewhere.
	Tag uint32
}

// MaxBan bounds Hit.Ban. The configuration refuses what lies outside.
const MaxBan = 366 * 24 * time.Hour

// Never as a RetryAfter says that the hit can never pass, however long the client waits.
const Never time.Duration = -1

// Decision is a bucket's answer to one hit. The zero value refuses with nothing left and no wait.
type Decision struct {
	// Allowed says that the bucket has room for the hit. An enforced hit is spent only if all enforced hits of the take
	// are allowed.
	Allowed bool
	// Remaining is how many units could still pass now, after this hit if it was spent: 0 … Limit.Capacity(). 0 when
	// refused.
	Remaining uint32
	// ResetAfter is the time until more units come: the wait of a hit of cost Remaining+1. 0 when the bucket is full and
	// when refused.
	ResetAfter time.Duration
	// RetryAfter is the wait after which the same hit passes if nothing else is spent. Never when it can never pass. 0 when
	// allowed, unless the take was refused and the hit is CountDenied: then it was spent, and may have to wait to pass again.
	RetryAfter time.Duration
	// BanLeft is how much longer the bucket refuses everything, if it was banned before the hit came; else 0.
	BanLeft time.Duration
	// Skipped says that the bucket was not asked, because the take was refused without it. The rest is zero then.
	Skipped bool
}

// Store keeps the buckets.
type Store interface {
	// Take decides all hits at one instant of the store's own clock, as one atomic step. The enforced hits are spent all
	// or none; a refused request spends nothing, but each hit still gets its decision: what its bucket holds unspent.
	// Each shadow hit is decided and spent on its own. The i-th decision answers the i-th hit. The hits are not kept.
	//
	// A bucket that is missing is full. Every bucket expires by itself some time after it is full again.
	//
	// An error means that nothing is known about any of the hits: there is never a partial result beside it. Take returns
	// a little before ctx's deadline, so that its error is still heard. It goes on when ctx is cancelled: else a client
	// that resets its requests fast enough would spend nothing.
	Take(ctx context.Context, hits []Hit) ([]Decision, error)
}
