package main

import (
	"fmt"
	"strings"
)

// The paths of the requests, and the clients who send them.
const (
	trendingPath = "/api/videos/trending?region=gb&page=2"
	uploadsPath  = "/api/videos/uploads?region=gb&page=22"
	refusedPath  = "/api/videos/refused?region=gb&page=22"
	rulePath     = "/rule-00005/things?region=gb&page=222"

	manyClients    = 10_000
	fewClients     = 1_000
	refusedClients = 100
	refusedQuota   = 10
)

// trending is one rule of the most usual kind.
const trending = `
- {name: trending, match: {paths: [/api/videos/trending]}, key: [client_ip, route], limit: 100/1m}
`

// redisRules has the same, three rules for one request, and one that refuses for an hour.
var redisRules = fmt.Sprintf(trending+`
- {name: minute, match: {paths: [/api/videos/uploads]}, key: [client_ip, route], limit: 100/1m}
- {name: quarter, match: {paths: [/api/videos/uploads]}, key: [client_ip], limit: 500/15m}
- {name: hour, match: {paths: [/api/videos/uploads]}, key: [header.x-api-key], limit: 1000/1h}
- {name: refused, match: {paths: [/api/videos/refused]}, key: [client_ip, route], limit: %d/1h}
`, refusedQuota)

// keptRules has one rule whose buckets live for an hour.
const keptRules = `
- {name: kept, match: {paths: [/api/videos/trending]}, key: [client_ip, route], limit: 1000/1h}
`

// manyRules are n rules, each for paths of its own.
func manyRules(n int) string {
	var b strings.Builder
	b.WriteByte('\n')
	for i := range n {
		rest := "things"
		if i%2 == 0 {
			rest = "**"
		}
		fmt.Fprintf(&b, "- {name: rule-%05d, match: {paths: [/rule-%05[1]d/%s]}, key: [client_ip, route], limit: 100/1m}\n", i, rest)
	}
	return b.String()
}

// configuration returns a file for a daemon that keeps its buckets in memory, or in the Redis of that URL. Redis may take its
// time, for the machine may be busy: what fails is not decided, and not measured.
func configuration(redisURL, rules string) string { return listening("127.0.0.1:0", redisURL, rules) }

// listening is the same for a daemon that listens there.
func listening(listen, redisURL, rules string) string {
	store := "memory: {max_keys: 1200000}"
	if redisURL != "" {
		store = fmt.Sprintf("redis: {url: %q, timeout: 2s}", redisURL)
	}
	return fmt.Sprintf("listen: %s\nadmin: \"\"\nstore: {%s}\nrules:%s", listen, store, rules)
}
