package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// Effective returns the configuration as YAML: every default filled in, named sets spelt out, always in the same order, and
// secrets masked. Without a secret in it, Parse makes the same configuration of it.
func (c *Config) Effective() []byte { return c.masked().yaml() }

// Hash returns the SHA-256 of the effective configuration with its secrets, in hex: it changes with every change of
// meaning, and not with comments or layout.
func (c *Config) Hash() string {
	sum := sha256.Sum256(c.yaml())
	return hex.EncodeToString(sum[:])
}

// mask stands for a secret, as it does in a redacted URL.
const mask = "xxxxx"

// secretName finds the headers and query parameters whose values let in whoever knows them: a rule for one client may name
// its API key, and the effective configuration is shown to all who may look at metrics.
var secretName = regexp.MustCompile("auth|cookie|key|password|secret|token")

// masked returns a copy of the configuration without its secrets.
func (c *Config) masked() *Config {
	m := *c
	if c.Store.Redis != nil {
		redis := *c.Store.Redis
		redis.URL = maskURL(redis.URL)
		m.Store.Redis = &redis
	}
	m.Rules = slices.Clone(c.Rules)
	for i := range m.Rules {
		r := &m.Rules[i]
		maskMatch(&r.Match)
		r.Overrides = slices.Clone(r.Overrides)
		for j := range r.Overrides {
			maskMatch(&r.Overrides[j].Match)
		}
	}
	return &m
}

// maskMatch hides the secrets of a match without changing what it shares with others.
func maskMatch(m *rules.Match) {
	m.Headers, m.Query = slices.Clone(m.Headers), slices.Clone(m.Query)
	for i := range m.Headers {
		m.Headers[i].Values = maskValues(m.Headers[i].Name, m.Headers[i].Values)
	}
	for i := range m.Query {
		m.Query[i].Values = maskValues(m.Query[i].Name, m.Query[i].Values)
	}
}

func maskValues(name string, values []string) []string {
	if values == nil || !secretName.MatchString(strings.ToLower(name)) {
		return values
	}
	return slices.Repeat([]string{mask}, len(values))
}

// maskURL hides the passwords of a URL; one without stays as it is. One for sentinels may hold a second.
func maskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return mask
	}
	if query := u.Query(); query.Has("password") {
		query.Set("password", mask)
		u.RawQuery = query.Encode()
		text = u.String()
	}
	if _, secret := u.User.Password(); secret {
		return u.Redacted()
	}
	return text
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

// yaml writes the configuration.
func (c *Config) yaml() []byte {
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
		Rules:    []ruleYAML{},
	}
	f.Store.Memory.MaxKeys = c.Store.Memory.MaxKeys
	if r := c.Store.Redis; r != nil {
		f.Store.Redis = &redisYAML{r.URL, r.Mode, formatLength(r.Timeout), r.KeyPrefix}
	}
	for _, h := range c.ClientIP.Headers {
		f.ClientIP.Headers = append(f.ClientIP.Headers, addressYAML{h.Name, texts(h.From)})
	}
	for i := range c.Rules {
		f.Rules = append(f.Rules, ruleOf(&c.Rules[i]))
	}
	out, _ := yaml.Dump(f) // plain strings and numbers always have a YAML form
	return out
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
