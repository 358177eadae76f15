package config

import (
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// The words of the file for the values of enumerations, in the order of the values.
var (
	actions     = []string{"limit", "allow", "deny"}
	modes       = []string{"enforce", "shadow"}
	missingKeys = []string{"client_ip", "skip", "deny", "shared"}
)

// limitKeys are the keys that only a rule with the action limit has.
var limitKeys = []string{"key", "limit", "algorithm", "burst", "cost", "on_missing_key", "on_store_error"}

const wantName = "1 to 64 lower-case letters, digits or hyphens"

var ruleName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// decodedRule is a rule with its place in the file, which warnings need.
type decodedRule struct {
	rule rules.Rule
	fields
}

// rules reads the list of rules; policy is that of a rule without its own.
func (f fields) rules(policy rules.StorePolicy) []decodedRule {
	v, ok := f.get("rules")
	if !ok {
		return nil
	}
	entries, _ := v.list(0, "a list of rules, each beginning with - name:")
	var decoded []decodedRule
	lines := map[string]int{}
	for i, entry := range entries {
		r, ok := entry.named(i).decode(policy)
		if !ok {
			continue
		}
		name, ok := r.get("name")
		if !ok || !ruleName.MatchString(r.rule.Name) {
			continue // noted already
		}
		if first, twice := lines[r.rule.Name]; twice {
			name.fail("the name is used twice, first on line %d, wanted one of its own", first)
		} else {
			lines[r.rule.Name] = name.node.Line
		}
		decoded = append(decoded, r)
	}
	return decoded
}

// named gives the i-th entry of the list its rule's name, so that every problem in it can say it. A rule without a name
// is called by its index.
func (v value) named(i int) value {
	if v.isMapping() {
		for k := 0; k+1 < len(v.node.Content); k += 2 {
			key, name := follow(v.node.Content[k]), follow(v.node.Content[k+1])
			if key.Value == "name" && name.Kind == yaml.ScalarNode && name.Value != "" {
				v.rule, v.field = name.Value, ""
				return v
			}
		}
	}
	v.field = fmt.Sprintf("rules[%d]", i)
	return v
}

// decode reads one rule.
func (v value) decode(policy rules.StorePolicy) (decodedRule, bool) {
	f, ok := v.fields(ruleSection)
	if !ok {
		return decodedRule{}, false
	}
	r := rules.Rule{Cost: 1, OnStoreError: policy}
	if name, ok := f.require("name", wantName); ok {
		r.Name = name.ruleName()
	}
	if action, ok := f.get("action"); ok {
		i, known := action.choice(actions)
		r.Action = rules.Action(i)
		if !known { // then nobody can say whether these are missing
			f.meant["key"], f.meant["limit"] = true, true
		}
	}
	if mode, ok := f.get("mode"); ok {
		i, _ := mode.choice(modes)
		r.Shadow = i == 1
	}
	if match, ok := f.section("match", matchSection); ok {
		r.Match = match.match()
	}
	if r.Action == rules.Limit {
		f.spend(&r)
		return decodedRule{r, f}, true
	}
	for _, key := range limitKeys {
		if at, ok := f.keys[key]; ok {
			at.fail("does not go with action: %s, wanted it left out", actions[r.Action])
		}
	}
	return decodedRule{r, f}, true
}

func (v value) ruleName() string {
	name, ok := v.text(wantName)
	if ok && !ruleName.MatchString(name) {
		v.fail("%s is no name for a rule, wanted %s", quote(name), wantName)
	}
	return name
}

// spend reads what only a limit rule has.
func (f fields) spend(r *rules.Rule) {
	if v, ok := f.require("key", "what separates one bucket from another, like [client_ip], or [] for one bucket for all"); ok {
		r.Key = v.key()
	}
	f.limit(r)
	if v, ok := f.get("cost"); ok {
		most := uint64(math.MaxUint32)
		if r.Limit.Algorithm == limiter.SlidingLog {
			most = limiter.MaxSlidingLogCost
		}
		n, _ := v.number(0, most)
		r.Cost = uint32(n)
	}
	if v, ok := f.get("on_missing_key"); ok {
		i, _ := v.choice(missingKeys)
		r.OnMissingKey = rules.MissingKey(i)
	}
	if v, ok := f.get("on_store_error"); ok {
		r.OnStoreError = v.storePolicy()
	}
}

// key reads the attributes that make up a bucket's key.
func (v value) key() []rules.Attribute {
	entries, _ := v.list(0, "a list of attributes like [client_ip, route]")
	var key []rules.Attribute
	seen := map[string]bool{}
	for _, entry := range entries {
		text, ok := entry.text("an attribute like client_ip or header.x-api-key")
		if !ok {
			continue
		}
		attribute, err := rules.ParseAttribute(text)
		switch {
		case err != nil:
			entry.fail("%s%s", oneLine(err), didYouMean(nearestAttribute(text)))
		case attribute.String() == "header.host":
			entry.fail("%s is in no request, as Envoy sends it as :authority, wanted host", quote(text))
		case seen[attribute.String()]:
			entry.fail("%s is here twice, wanted each attribute once", quote(text))
		default:
			seen[attribute.String()] = true
			key = append(key, attribute)
		}
	}
	return key
}

// nearestAttribute returns the attribute that a misspelt one means; "" when that is unknown.
func nearestAttribute(text string) string {
	kind, name, ok := strings.Cut(text, ".")
	if ok && name != "" && kind != "header" && nearest(kind, []string{"header"}) != "" {
		return "header." + name
	}
	return nearest(text, []string{"client_ip", "method", "host", "path", "route"})
}

// limit reads limit, algorithm and burst, which bound each other.
func (f fields) limit(r *rules.Rule) {
	l := &r.Limit
	l.Algorithm = f.algorithm()
	if v, ok := f.require("limit", "QUOTA/WINDOW like 100/1m"); ok {
		text, ok := v.text("QUOTA/WINDOW like 100/1m")
		if ok {
			v.quota(l, text)
		}
	}
	l.Burst = f.burst(l)
	l.Tick = limiter.TickFor(l.Capacity(), l.Window)
}

// algorithm returns the algorithm of a rule; none if it cannot be told, so that nothing is held against its bounds.
func (f fields) algorithm() limiter.Algorithm {
	v, ok := f.get("algorithm")
	switch {
	case !ok && f.meant["algorithm"]:
		return 0
	case !ok:
		return limiter.SlidingLog
	}
	i, ok := v.choice(limiter.Algorithms)
	if !ok {
		return 0
	}
	return limiter.Algorithm(i + 1)
}

func (v value) quota(l *limiter.Limit, text string) {
	var err error
	l.Quota, l.Window, err = parseLimit(text)
	switch {
	case err != nil:
		v.fail("%v", err)
	case l.Algorithm == limiter.SlidingLog && l.Quota > limiter.MaxSlidingLogQuota:
		v.fail("%s is too much for sliding_log, wanted a quota of at most %d, or grouped_log",
			quote(text), limiter.MaxSlidingLogQuota)
	}
}

// burst returns the burst of a limit: 0 if it is no token bucket, or one that never fills.
func (f fields) burst(l *limiter.Limit) uint32 {
	burst := l.Quota
	if v, ok := f.get("burst"); ok {
		n, ok := v.number(1, math.MaxUint32)
		burst = uint32(n)
		switch {
		case l.Algorithm == 0:
		case l.Algorithm != limiter.TokenBucket:
			f.keys["burst"].fail("does not go with algorithm: %s, wanted algorithm: token_bucket", l.Algorithm)
		case ok && l.Quota > 0 && tooSlow(burst, l):
			v.fail("%d takes longer than 3660d to refill at %s, wanted a smaller burst or a larger quota", burst, formatLimit(*l))
		}
	}
	if l.Algorithm != limiter.TokenBucket || l.Quota == 0 {
		return 0
	}
	return burst
}

// tooSlow reports whether burst·window/quota is above its bound.
func tooSlow(burst uint32, l *limiter.Limit) bool {
	needHigh, needLow := bits.Mul64(uint64(burst), uint64(l.Window/time.Millisecond))
	high, low := bits.Mul64(uint64(l.Quota), uint64(limiter.MaxBurstLifetime/time.Millisecond))
	return needHigh > high || needHigh == high && needLow > low
}
