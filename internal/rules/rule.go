package rules

import (
	"net/netip"
	"time"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// Action is what a rule does with a request that it matches.
type Action uint8

// The actions. The zero value limits.
const (
	Limit Action = iota // spend from a bucket
	Allow               // let pass, spend nothing
	Deny                // refuse with 403, spend nothing
)

// MissingKey is what a rule does when a part of its key is missing: absent, empty or repeated.
type MissingKey uint8

// The choices. The zero value puts a marked client address in the missing part's place.
const (
	UseClientIP   MissingKey = iota
	SkipRule                 // the rule does not apply
	RefuseMissing            // the request is refused with 403
	ShareBucket              // one bucket for all who lack the part
)

// StorePolicy is what becomes of a request that a rule would have limited when the store fails.
type StorePolicy uint8

// The policies. The zero value allows. When several rules apply, Refuse goes before Local, and Local before Admit.
const (
	Admit  StorePolicy = iota // allow, marked as degraded
	Refuse                    // refuse with 503
	Local                     // decide in this process, by this daemon's share of the limit
)

// Rule is one rule as the configuration states it, with every default filled in.
type Rule struct {
	// Name is unique among the rules: [a-z0-9-]{1,64}.
	Name   string
	Action Action
	Match  Match
	// Shadow rules are decided and counted but never change an answer.
	Shadow bool

	// The rest is for Limit rules alone.

	// Key lists what separates one bucket from another; empty, there is one bucket for all.
	Key []Attribute
	// Limit has its Tick set.
	Limit limiter.Limit
	// Cost is how many units each request spends: 0 … 2^32−1; 0 only looks. With CostFrom it is what a request spends that
	// does not state its cost, or not as it should: CostFrom.Min … CostFrom.Max.
	Cost uint32
	// CostFrom is where a request states its cost; nil when each costs the same.
	CostFrom *CostFrom
	// Overrides replace Limit, Cost and CostFrom: the first whose match holds does.
	Overrides    []Override
	OnMissingKey MissingKey
	OnStoreError StorePolicy
	// CountDenied spends the cost of refused requests too, as far as there is room.
	CountDenied bool
	// Ban is for how long the bucket refuses everything after a refusal: 0 … limiter.MaxBan, whole milliseconds; 0 is no ban.
	Ban time.Duration
}

// Match lists conditions of which all must hold. A nil list is no condition; within a list any one entry is enough. The
// zero value matches every request.
type Match struct {
	Hosts     []HostPattern
	Methods   []string // upper case
	Paths     []PathPattern
	ClientIPs []netip.Prefix // seen with the full address, whatever the prefix that groups keys

	// Of the conditions on values all must hold, each with any one of its values.

	Headers    []HeaderCondition
	Query      []QueryCondition
	Extensions []ExtensionCondition
	Metadata   []MetadataCondition
}

// OnlyHTTP reports whether a request without HTTP fails the match whatever else it has.
func (m *Match) OnlyHTTP() bool {
	return len(m.Hosts)+len(m.Methods)+len(m.Paths)+len(m.Headers)+len(m.Query) > 0
}
