package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// Effective returns the configuration as YAML: every default filled in, named sets spelt out, always in the same order, and
// secrets masked. Without a secret in it, Parse makes the same configuration of it.
func (c *Config) Effective() []byte {
	c = c.masked()
	f := c.head()
	first := min(rulesAtOnce, len(c.Rules))
	f.Rules = rulesOf(c.Rules[:first])
	out, _ := yaml.Dump(f) // plain strings and numbers always have a YAML form
	for some := range slices.Chunk(c.Rules[first:], rulesAtOnce) {
		more, _ := yaml.Dump(map[string][]ruleYAML{"rules": rulesOf(some)})
		out = append(out, bytes.TrimPrefix(more, []byte("rules:\n"))...)
	}
	return out
}

// rulesAtOnce is how many rules are written at a time: the YAML library keeps all that it has to write until it is done.
const rulesAtOnce = 100

// Hash returns the SHA-256 of the effective configuration with its secrets, in hex: it changes with every change of
// meaning, and not with comments or layout.
func (c *Config) Hash() string {
	sum := sha256.New()
	write := json.NewEncoder(sum) // many times as fast as YAML, of which a start with very many rules would take seconds
	_ = write.Encode(c.head())    // plain strings and numbers always have a JSON form
	for i := range c.Rules {
		_ = write.Encode(ruleOf(&c.Rules[i]))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// The shapes of the file, in the order of the documentation.
type (
	fileYAML struct {
		Listen       []string     `yaml:"listen,flow"`
		Admin        string       `yaml:"admin"`
		Log          logYAML      `yaml:"log,flow"`
		Store        storeYAML    `yaml:"store"`
		OnStoreError string       `yaml:"on_store_error"`
		Replicas     uint32       `yaml:"replicas"`
		ClientIP     clientYAML   `yaml:"client_ip"`
		Response     responseYAML `yaml:"response"`
		Rules        []ruleYAML   `yaml:"rules"`
	}
	logYAML struct {
		Level  string `yaml:"level"`
		Format string `yaml:"format"`
	}
	storeYAML struct {
		Redis  *redisYAML `yaml:"redis,omitempty"`
		Memory struct {
			MaxKeys int `yaml:"max_keys"`
		} `yaml:"memory,flow"`
	}
	redisYAML struct {
		URL       string `yaml:"url"`
		Mode      string `yaml:"mode"`
		Timeout   string `yaml:"timeout"`
		KeyPrefix string `yaml:"key_prefix"`
	}
	clientYAML struct {
		From           string        `yaml:"from"`
		TrustedProxies []string      `yaml:"trusted_proxies,flow"`
		Headers        []addressYAML `yaml:"headers"`
		IPv6Prefix     int           `yaml:"ipv6_prefix"`
	}
	addressYAML struct {
		Name string   `yaml:"name"`
		From []string `yaml:"from,flow,omitempty"`
	}
	responseYAML struct {
		Headers []string `yaml:"headers,flow"`
		Body    string   `yaml:"body"`
		Status  int      `yaml:"status"`
	}
	ruleYAML struct {
		Name   string     `yaml:"name"`
		Action string     `yaml:"action"`
		Match  *matchYAML `yaml:"match,omitempty"`
		Spend  *spendYAML `yaml:",inline"`
		Mode   string     `yaml:"mode"`
	}
	matchYAML struct {
		Hosts      []string            `yaml:"hosts,flow,omitempty"`
		Methods    []string            `yaml:"methods,flow,omitempty"`
		Paths      []string            `yaml:"paths,flow,omitempty"`
		Headers    map[string]any      `yaml:"headers,omitempty"`
		Query      map[string]any      `yaml:"query,omitempty"`
		ClientIPs  []string            `yaml:"client_ips,flow,omitempty"`
		Extensions map[string][]string `yaml:"extensions,omitempty"`
		Metadata   map[string][]string `yaml:"metadata,omitempty"`
	}
	spendYAML struct {
		Key          []string       `yaml:"key,flow"`
		Limit        string         `yaml:"limit"`
		Algorithm    string         `yaml:"algorithm"`
		Timezone     string         `yaml:"timezone,omitempty"`
		Burst        uint32         `yaml:"burst,omitempty"`
		Cost         any            `yaml:"cost"`
		OnMissingKey string         `yaml:"on_missing_key"`
		OnStoreError string         `yaml:"on_store_error"`
		CountDenied  bool           `yaml:"count_denied"`
		Ban          string         `yaml:"ban"`
		Overrides    []overrideYAML `yaml:"overrides,omitempty"`
	}
	costYAML struct {
		From    string `yaml:"from"`
		Default uint32 `yaml:"default"`
		Min     uint32 `yaml:"min"`
		Max     uint32 `yaml:"max"`
	}
	overrideYAML struct {
		Match *matchYAML `yaml:"match"`
		Limit string     `yaml:"limit"`
		Burst uint32     `yaml:"burst,omitempty"`
		Cost  any        `yaml:"cost"`
	}
)

// head returns the configuration without its rules.
func (c *Config) head() fileYAML {
	f := fileYAML{
		Listen:       texts(c.Listen),
		Admin:        c.Admin,
		Log:          logYAML(c.Log),
		OnStoreError: storePolicies[c.OnStoreError],
		Replicas:     c.Replicas,
		ClientIP: clientYAML{
			From: addressSources[c.ClientIP.From], TrustedProxies: texts(c.ClientIP.Trusted), IPv6Prefix: c.ClientIP.IPv6Prefix,
		},
		Response: responseYAML{Headers: c.Response.families(), Body: c.Response.Body, Status: c.Response.Status},
	}
	f.Store.Memory.MaxKeys = c.Store.Memory.MaxKeys
	if r := c.Store.Redis; r != nil {
		f.Store.Redis = &redisYAML{r.URL, r.Mode, formatLength(r.Timeout), r.KeyPrefix}
	}
	for _, h := range c.ClientIP.Headers {
		f.ClientIP.Headers = append(f.ClientIP.Headers, addressYAML{h.Name, texts(h.From)})
	}
	return f
}

func rulesOf(list []rules.Rule) []ruleYAML {
	y := make([]ruleYAML, len(list))
	for i := range list {
		y[i] = ruleOf(&list[i])
	}
	return y
}

func (r Response) families() []string {
	families := []string{}
	for i, on := range []bool{r.XRateLimit, r.RateLimit} {
		if on {
			families = append(families, headerFamilies[i])
		}
	}
	return families
}

func ruleOf(r *rules.Rule) ruleYAML {
	y := ruleYAML{Name: r.Name, Action: actions[r.Action], Match: matchOf(&r.Match), Mode: modes[0]}
	if r.Shadow {
		y.Mode = modes[1]
	}
	if r.Action == rules.Limit {
		y.Spend = &spendYAML{
			Key: texts(r.Key), Limit: formatLimit(r.Limit), Algorithm: r.Limit.Algorithm.String(), Burst: r.Limit.Burst,
			Cost: costOf(r.Cost, r.CostFrom), OnMissingKey: missingKeys[r.OnMissingKey], OnStoreError: storePolicies[r.OnStoreError],
			CountDenied: r.CountDenied, Ban: formatLength(r.Ban),
		}
		if r.Limit.Calendar.Period != 0 {
			y.Spend.Timezone = r.Limit.Calendar.Zone.String()
		}
		for i := range r.Overrides {
			o := &r.Overrides[i]
			y.Spend.Overrides = append(y.Spend.Overrides, overrideYAML{
				Match: cmp.Or(matchOf(&o.Match), &matchYAML{}), Limit: formatLimit(o.Limit), Burst: o.Limit.Burst,
				Cost: costOf(o.Cost, o.CostFrom),
			})
		}
	}
	return y
}

// costOf returns a cost as the file has it: a number, or where it comes from.
func costOf(cost uint32, from *rules.CostFrom) any {
	if from == nil {
		return cost
	}
	return costYAML{From: from.Attribute.String(), Default: cost, Min: from.Min, Max: from.Max}
}

func matchOf(m *rules.Match) *matchYAML {
	y := matchYAML{
		Hosts: texts(m.Hosts), Methods: m.Methods, Paths: texts(m.Paths), ClientIPs: texts(m.ClientIPs),
		Headers: map[string]any{}, Query: map[string]any{}, Extensions: map[string][]string{}, Metadata: map[string][]string{},
	}
	for _, h := range m.Headers {
		y.Headers[h.Name] = presenceOf(h.Presence, h.Values)
	}
	for _, q := range m.Query {
		y.Query[q.Name] = presenceOf(q.Presence, q.Values)
	}
	for _, e := range m.Extensions {
		y.Extensions[e.Name] = e.Values
	}
	for _, c := range m.Metadata {
		y.Metadata[c.At.String()] = c.Values
	}
	if !m.OnlyHTTP() && len(y.ClientIPs)+len(y.Extensions)+len(y.Metadata) == 0 {
		return nil
	}
	return &y
}

// presenceOf returns what a header or parameter must be, as the file has it.
func presenceOf(presence rules.Presence, values []string) any {
	switch presence {
	case rules.Present:
		return "present"
	case rules.Absent:
		return "absent"
	}
	return values
}

// formatLimit writes QUOTA/WINDOW.
func formatLimit(l limiter.Limit) string {
	return fmt.Sprintf("%d/%s", l.Quota, formatWindow(l))
}

// formatWindow writes the window of a limit: the same for all ways of writing it.
func formatWindow(l limiter.Limit) string {
	if l.Calendar.Period != 0 {
		return periods[l.Calendar.Period]
	}
	return formatLength(l.Window)
}

// texts returns what each value is written as; an empty list for none.
func texts[T fmt.Stringer](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v.String()
	}
	return list
}
