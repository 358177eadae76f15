package config

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// inCluster parses rules for a cluster.
func inCluster(t *testing.T, text string) *Config {
	t.Helper()
	c := parse(t, text)
	c.Store.Redis = &Redis{Mode: limiter.ModeCluster}
	return c
}

// D64
func TestRulesThatMeetARuleWithAnotherSlotAreGroupedByWhatChoosesTheSlot(t *testing.T) {
	const text = `
rules:
- {name: ip, key: [client_ip, route], limit: 5/1m}
- {name: api, match: {paths: [/api/**]}, key: [header.X-Api-Key], limit: 5/1m}
- {name: office, action: allow, match: {methods: [PUT]}}
- {name: total, match: {paths: [/api/a]}, key: [], limit: 5/1m}
- {name: by-path, match: {methods: [POST], paths: [/api/a]}, key: [path], limit: 5/1m}
- {name: tried, key: [header.x-plan, client_ip], limit: 5/1m, mode: shadow}`
	want := []SlotGroup{
		{"client_ip", []string{"ip", "tried"}}, {"header.x-api-key", []string{"api"}}, {"", []string{"total", "by-path"}},
	}
	c := inCluster(t, text)
	if got := c.SlotGroups(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	c.Store.Redis.Mode = "single"
	if got := c.SlotGroups(); got != nil {
		t.Errorf("with one Redis: %v", got)
	}
	c.Store.Redis = nil
	if got := c.SlotGroups(); got != nil {
		t.Errorf("in memory: %v", got)
	}
}

func TestRulesWithOneSlotOrWithoutARequestInCommonCostNoMoreTrips(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string // what two rules are
		met  bool
	}{
		"one attribute":       {"key: [client_ip]", "key: [route, client_ip]", false},
		"two attributes":      {"key: [client_ip]", "key: [principal]", true},
		"two headers":         {"key: [header.x-a]", "key: [header.x-b]", true},
		"each bucket its own": {"key: [route]", "key: [route]", true},
		"one bucket each":     {"key: []", "key: []", true},
		"methods":             {"key: [], match: {methods: [GET, PUT]}", "key: [], match: {methods: [POST]}", false},
		"a common method":     {"key: [], match: {methods: [GET, PUT]}", "key: [], match: {methods: [POST, PUT]}", true},
		"hosts":               {"key: [], match: {hosts: [a.example, '*.b.example']}", "key: [], match: {hosts: [b.example, '*.a.example']}", false},
		"a host below":        {"key: [], match: {hosts: ['*.example']}", "key: [], match: {hosts: ['*.b.example']}", true},
		"paths":               {"key: [], match: {paths: [/a, /b/*]}", "key: [], match: {paths: [/b, /a/*, /b/x/y/**]}", false},
		"a path below":        {"key: [], match: {paths: [/a/**]}", "key: [], match: {paths: [/*/b]}", true},
		"a path at the top":   {"key: [], match: {paths: [/a/**]}", "key: [], match: {paths: [/a]}", true},
		"a regular expression": {
			"key: [], match: {paths: [~^/a]}", "key: [], match: {paths: [/b]}", true},
		"clients":         {"key: [], match: {client_ips: [10.0.0.0/8]}", "key: [], match: {client_ips: [192.0.2.1]}", false},
		"a common client": {"key: [], match: {client_ips: [10.0.0.0/8]}", "key: [], match: {client_ips: [10.9.0.1]}", true},
		"absent":          {"key: [], match: {headers: {x-a: absent}}", "key: [], match: {headers: {x-a: [b]}}", false},
		"of many values":  {"key: [], match: {headers: {x-a: a}}", "key: [], match: {headers: {x-a: b}}", true},
		"of one value":    {"key: [], match: {extensions: {x-a: a}}", "key: [], match: {extensions: {x-a: [b, c]}}", false},
		"a common value":  {"key: [], match: {metadata: {'n:a': [b]}}", "key: [], match: {metadata: {'n:a': [c, b]}}", true},
		"other names":     {"key: [], match: {extensions: {x-a: a}}", "key: [], match: {extensions: {x-b: b}}", true},
	} {
		groups := inCluster(t, "rules: [{name: a, limit: 5/1m, "+c.a+"}, {name: b, limit: 5/1m, "+c.b+"}]").SlotGroups()
		if met := groups != nil; met != c.met {
			t.Errorf("%s: %v, want any: %v", name, groups, c.met)
		}
	}
}

// No request costs more trips unannounced.
func TestRulesThatApplyToOneRequestAreSaidToMeet(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	met, apart := 0, 0
	for range 60 {
		text := "rules:\n"
		for i := range 40 {
			text += randomRule(random, i)
		}
		c := parse(t, text)
		scopes := map[string]scope{}
		for i := range c.Rules {
			scopes[c.Rules[i].Name] = scopeOf(&c.Rules[i])
		}
		for _, a := range scopes {
			for _, b := range scopes {
				if !a.meets(&b) {
					apart++
				}
			}
		}
		set := rules.NewSet(c.Rules, c.ClientIP)
		for range 200 {
			applied := set.Apply(randomRequest(random)).Rules
			for i, r := range applied {
				for _, other := range applied[:i] {
					met++
					if a, b := scopes[r.Name], scopes[other.Name]; !a.meets(&b) {
						t.Fatalf("%s and %s both apply to one request:\n%s", r.Name, other.Name, text)
					}
				}
			}
		}
	}
	if met < 1_000 || apart < 1_000 {
		t.Errorf("%d pairs met and %d were apart, too few to tell anything", met, apart)
	}
}

func TestRulesThatAreTooManyToCompareAreSaidToMeet(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range mostPairs / 1_200 {
		fmt.Fprintf(&text, "- {name: a%[1]d, match: {paths: [/a/%[1]d]}, key: [client_ip], limit: 5/1m}\n", i)
		fmt.Fprintf(&text, "- {name: b%[1]d, match: {paths: [/b/%[1]d]}, key: [principal], limit: 5/1m}\n", i)
	}
	c := inCluster(t, text.String())
	if groups := c.SlotGroups(); len(groups) != 2 || len(groups[1].Rules) >= len(c.Rules)/2 {
		t.Errorf("%d groups", len(groups))
	}
}

// Tags cost time and mean nothing to one Redis.
func TestOnlyAClustersRulesHaveTags(t *testing.T) {
	c := inCluster(t, "rules: [{name: a, key: [], limit: 5/1m}]")
	if hit := c.RuleSet().Apply(&rules.Request{}).Hits[0]; hit.Tag == 0 {
		t.Errorf("%+v", hit)
	}
	c.Store.Redis.Mode = "single"
	if hit := c.RuleSet().Apply(&rules.Request{}).Hits[0]; hit.Tag != 0 {
		t.Errorf("%+v", hit)
	}
}
