package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

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
