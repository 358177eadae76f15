package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// The names of what is measured through an Envoy.
const (
	noFilter    = "no filter"
	localFilter = "Envoy's own local rate limit filter"
	plainFilter = "ratelimitd, plain settings, TCP, memory"
	tcpMemory   = "ratelimitd, TCP, memory"
	unixMemory  = "ratelimitd, unix socket, memory"
	tcpRedis    = "ratelimitd, TCP, Redis"
	unixRedis   = "ratelimitd, unix socket, Redis"
)

// throughEnvoy is what is measured of it, in a minute and a half.
var throughEnvoy = extent{rounds: 20, trial: 250 * time.Millisecond}

// addedAim is what the deployed settings may add to Envoy's CPU time, as a share of what the plain settings add.
const addedAim = 0.75

// localLimit is Envoy's own limiter, with a limit that nothing reaches.
const localLimit = `
name: envoy.filters.http.local_ratelimit
typed_config:
  "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
  stat_prefix: local
  token_bucket: {max_tokens: 1000000, tokens_per_fill: 1000000, fill_interval: 1s}
  filter_enabled: {default_value: {numerator: 100, denominator: HUNDRED}}
  filter_enforced: {default_value: {numerator: 100, denominator: HUNDRED}}
`

// benchEnvoy measures what a request costs through an Envoy and prints the table of docs/performance.md.
func benchEnvoy(ctx context.Context, daemon string) error {
	v, err := newEnvoyLab(ctx, daemon, throughEnvoy)
	if err != nil {
		return err
	}
	defer v.stop()
	names, err := v.addAll()
	if err != nil {
		return err
	}
	f, err := v.measure()
	if err != nil {
		return err
	}
	printThroughEnvoy(os.Stdout, f, names)
	return nil
}

// addAll adds all that is measured, and returns their names.
func (v *envoyLab) addAll() ([]string, error) {
	var local tree
	if err := yaml.Unmarshal([]byte(localLimit), &local); err != nil {
		return nil, err
	}
	as := func(*bootstrap) error { return nil }
	subjects := []struct {
		name    string
		asks    *limiterDaemon // nil: none
		address string
		change  func(*bootstrap) error
	}{
		{noFilter, nil, v.memory.tcp, func(b *bootstrap) error { b.replaceFilter(nil); return nil }},
		{localFilter, nil, v.memory.tcp, func(b *bootstrap) error { b.replaceFilter(local); return nil }},
		{plainFilter, v.memory, v.memory.tcp, (*bootstrap).makePlain},
		{tcpMemory, v.memory, v.memory.tcp, as},
		{unixMemory, v.memory, v.memory.unix, as},
		{tcpRedis, v.inRedis, v.inRedis.tcp, as},
		{unixRedis, v.inRedis, v.inRedis.unix, as},
	}
	var names []string
	for _, s := range subjects {
		b, err := deployed(v.upstream, s.address)
		if err != nil {
			return nil, err
		}
		if err := s.change(b); err != nil {
			return nil, err
		}
		if err := v.add(s.name, b, s.asks); err != nil {
			return nil, err
		}
		names = append(names, s.name)
	}
	return names, nil
}

// printThroughEnvoy prints, as Markdown, what a request costs, and what is added to that of a request without a filter; and
// whether the deployed settings add as little as they should.
func printThroughEnvoy(w io.Writer, f figures, names []string) {
	lines := [][]string{{"", "requests/s", "p50, µs", "added", "p99, µs", "added", "Envoy, µs of CPU", "added", "daemon, µs of CPU"}}
	for _, name := range names {
		line := []string{name, fmt.Sprintf("%.0f", slices.Max(f[figure{name, rate}]))}
		for _, kind := range []figure{{paced(name), p50}, {paced(name), p99}, {name, envoyCPU}} {
			none := figure{noFilter, kind.kind}
			if kind.subject == paced(name) {
				none.subject = paced(noFilter)
			}
			least := slices.Min(f[kind])
			line = append(line, fmt.Sprintf("%.0f", least), fmt.Sprintf("%.0f", least-slices.Min(f[none])))
		}
		daemon := "–"
		if spent := f[figure{name, serverCPU}]; len(spent) > 0 {
			daemon = fmt.Sprintf("%.0f", slices.Min(spent))
		}
		lines = append(lines, append(line, daemon))
	}
	printMarkdown(w, lines)
	r, reached := f.addedToEnvoy(unixMemory, plainFilter), "missed"
	if r.value <= addedAim {
		reached = "reached"
	}
	fmt.Fprintf(w, "\nAdded CPU of Envoy, deploy/envoy.yaml over a unix socket against the plain settings: %s; aim ≤ %.2f: %s.\n", r, addedAim, reached)
}

// addedToEnvoy relates what two subjects add to Envoy's CPU time for a request without a filter.
func (f figures) addedToEnvoy(of, to string) result {
	share := func(of, to, none float64) float64 { return (of - none) / (to - none) }
	a, b, none := f[figure{of, envoyCPU}], f[figure{to, envoyCPU}], f[figure{noFilter, envoyCPU}]
	var rounds []float64
	for i := range a {
		rounds = append(rounds, share(a[i], b[i], none[i]))
	}
	return resultOf(share(slices.Min(a), slices.Min(b), slices.Min(none)), rounds)
}
