package main

import (
	"fmt"
	"io"
	"slices"
)

// printScale prints, as Markdown, what the runs cost, in µs of CPU for each decision, and what each part could do with cores
// of its own.
func printScale(w io.Writer, f figures, runs []run) {
	lines := [][]string{{
		"who asks", "Redis", "buckets", "in flight", "1 000 decisions a second", "p50; p99, ms",
		"load, µs", "daemons, µs", "Redis, µs (in scripts)", "decisions in a call", "bytes to Redis; from it; to its replica", "daemons could", "Redis could",
	}}
	for _, r := range runs {
		lines = append(lines, r.cells(f))
	}
	printMarkdown(w, lines)
}

func (r run) cells(f figures) []string {
	least := func(kind string) float64 { return slices.Min(f[figure{r.name, kind}]) }
	usual := func(kind string) float64 { return median(f[figure{r.name, kind}]) }
	busiest, together := r.redis(f)
	redis, inCall, couldRedis := fmt.Sprintf("%.1f", together), "–", "–"
	daemons, couldDaemons := "–", "–"
	if r.daemons == 0 { // Redis has a core of its own: what the clock tells is its CPU time
		redis += fmt.Sprintf(" (%.1f)", least(scriptTime))
	} else {
		spent := least(serverCPU)
		daemons, couldDaemons = fmt.Sprintf("%.1f", spent), thousands(float64(r.daemons)*1e6/spent)
	}
	if len(r.fleet.masters) > 1 {
		redis += fmt.Sprintf(", of one %.1f", busiest)
	}
	if calls := usual(scriptCalls); calls > 0 {
		inCall = fmt.Sprintf("%.3g", 1/calls)
	}
	if !r.refuses {
		couldRedis = thousands(1e6 / busiest)
	}
	return []string{
		r.asked, r.fleet.redis, r.buckets, fmt.Sprint(r.callers), thousands(slices.Max(f[figure{r.name, rate}])),
		fmt.Sprintf("%.1f; %.1f", least(p50)/1000, least(p99)/1000), fmt.Sprintf("%.1f", least(loadCPU)), daemons, redis, inCall,
		fmt.Sprintf("%.0f; %.0f; %.0f", usual(toRedis), usual(fromRedis), usual(toReplica)), couldDaemons, couldRedis,
	}
}

func thousands(n float64) string { return fmt.Sprintf("%.1f", n/1000) }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
