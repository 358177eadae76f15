package config

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v4"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// The words of the file for the values of enumerations, in the order of the values.
var (
	actions     = []string{"limit", "allow", "deny"}
	modes       = []string{"enforce", "shadow"}
	missingKeys = []string{"client_ip", "skip", "deny", "shared"}
	truths      = []string{"false", "true"}
)

// limitKeys are the keys that only a rule with the action limit has.
var limitKeys = []string{"key", "limit", "algorithm", "timezone", "burst", "cost", "on_missing_key", "on_store_error",
	"count_denied", "ban", "overrides"}

const wantName = "1 to 64 lower-case letters, digits or hyphens"

var ruleName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// decodedRule is a rule with its place in the file, which warnings need.
type decodedRule struct {
	rule rules.Rule
	fields
	overrides []fields // of each override of the rule
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
		overrides := f.spend(&r)
		return decodedRule{r, f, overrides}, true
	}
	for _, key := range limitKeys {
		if at, ok := f.keys[key]; ok {
			at.fail("does not go with action: %s, wanted it left out", actions[r.Action])
		}
	}
	return decodedRule{r, f, nil}, true
}

func (v value) ruleName() string {
	name, ok := v.text(wantName)
	if ok && !ruleName.MatchString(name) {
		v.fail("%s is no name for a rule, wanted %s", quote(name), wantName)
	}
	return name
}

// spend reads what only a limit rule has, and returns the fields of its overrides.
func (f fields) spend(r *rules.Rule) []fields {
	if v, ok := f.require("key", "what separates one bucket from another, like [client_ip], or [] for one bucket for all"); ok {
		r.Key = v.key()
	}
	burst := f.limit(&r.Limit)
	f.cost(r.Limit.Algorithm, &r.Cost, &r.CostFrom)
	overrides := f.overrides(r, burst)
	if v, ok := f.get("on_missing_key"); ok {
		i, _ := v.choice(missingKeys)
		r.OnMissingKey = rules.MissingKey(i)
	}
	if v, ok := f.get("on_store_error"); ok {
		r.OnStoreError = v.storePolicy()
	}
	if v, ok := f.get("count_denied"); ok {
		i, _ := v.choice(truths)
		r.CountDenied = i == 1
	}
	f.length("ban", "a length of time like 15m", 0, limiter.MaxBan, &r.Ban)
	setTicks(r)
	return overrides
}
