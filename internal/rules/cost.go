package rules

import (
	"strconv"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// CostFrom lets an attribute of the request state its cost.
type CostFrom struct {
	Attribute Attribute
	// Min and Max bound the cost: 0 … 2^32−1 (limiter.MaxSlidingLogCost for a sliding log). Less counts as Min and more as
	// Max, so a cost of 0, which only looks, needs a Min of 0.
	Min, Max uint32
}

// Override replaces the numbers of a rule for some of its requests; their bucket stays the rule's.
type Override struct {
	Match Match
	// Limit has the algorithm, window and tick of the rule's limit.
	Limit limiter.Limit
	// Cost and CostFrom are as in a Rule.
	Cost     uint32
	CostFrom *CostFrom
}

// numbers are what a hit is made of beside its bucket.
type numbers struct {
	limit limiter.Limit
	cost  uint32
	from  *CostFrom
}

// numbers returns those of the first override that holds, else the rule's own. Whoever can add a value to a repeated header
// must not get a better limit for it, so all of its values must match.
func (f *facts) numbers(r *compiledRule) numbers {
	for i := range r.Overrides {
		o := &r.Overrides[i]
		if _, ok := f.match(&o.Match, true); ok {
			return numbers{o.Limit, o.Cost, o.CostFrom}
		}
	}
	return numbers{r.Limit, r.Cost, r.CostFrom}
}

// costOf returns what the request costs. valid is false if the attribute is there and is not written as one number of
// digits alone up to 2^63−1.
func (f *facts) costOf(n numbers, route string) (cost uint32, valid bool) {
	if n.from == nil {
		return n.cost, true
	}
	text, count := f.value(n.from.Attribute, route)
	if count == 0 {
		return n.cost, true
	}
	units, err := strconv.ParseUint(text, 10, 63)
	if err != nil || count > 1 {
		return n.cost, false
	}
	return uint32(min(max(units, uint64(n.from.Min)), uint64(n.from.Max))), true
}
