package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// row is a line of the table.
type row struct {
	path     string
	measured result
	unit     string
	must     float64
	aim      float64 // 0: none
}

// table returns the rows for what was measured. slack multiplies what must be.
func table(f figures, e extent, allocations float64) []row {
	var rows []row
	add := func(path string, measured result, unit string, must, aim float64) {
		rows = append(rows, row{path, measured, unit, must * e.slack, aim})
	}
	const ofStd, ofSet = "× std", "× sorted set"
	for _, f1 := range e.forms {
		to := figure{in(f1, stdServer), serverCPU}
		against := func(name string) result { return f.ratio(figure{in(f1, name), serverCPU}, to) }
		add("memory store, one sliding_log rule; "+string(f1), against(memoryDaemon), ofStd, 0.6, 0.45)
		add("Redis on a unix socket, one sliding_log rule; "+string(f1), against(redisDaemon), ofStd, 0.75, 0.55)
		add("refused, known to the deny cache; "+string(f1), against(denyCache), ofStd, 0.55, 0.42)
	}
	add("… calls of Redis in a second for each refused bucket", f.callsASecond(longFlood), "", 1, 0)
	one := in(aForm, redisDaemon)
	add("Redis itself, quota 100, allowed", f.ratio(figure{ringAllowed, redisCPU}, figure{setAllowed, redisCPU}), ofSet, 0.6, 0.4)
	add("Redis itself, quota 100, refused", f.ratio(figure{ringRefused, redisCPU}, figure{setRefused, redisCPU}), ofSet, 0.6, 0.4)
	add("three rules in one request against one, daemon", f.ratio(figure{redisThree, serverCPU}, figure{one, serverCPU}), "×", 1.5, 1.25)
	add("three rules in one request against one, Redis", f.ratio(figure{redisThree, redisCPU}, figure{one, redisCPU}), "×", 2.3, 1.8)
	add("10 000 rules against 10, memory store", f.ratio(figure{tenThousand, serverCPU}, figure{tenRules, serverCPU}), "×", 1.15, 1.05)
	add(fmt.Sprintf("%d live keys against %d, memory store", e.keys, fewClients),
		f.ratio(figure{manyKeys, serverCPU}, figure{fewKeys, serverCPU}), "×", 1.5, 1.2)
	if e.alone {
		add("one request at a time: p50 added, Redis", f.added(figure{redisAlone, p50}, figure{stdAlone, p50}, figure{scriptAlone, p50}),
			"× (round trip + 50 µs)", 1, 0)
	}
	add("allocations for each decision in our own code", constant(allocations), "", 6, 2)
	return rows
}

// missed returns the rows in which a must is missed.
func missed(rows []row) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.measured.value <= r.must })
}

func (r row) cells() []string {
	aim := "–"
	if r.aim > 0 {
		aim = fmt.Sprintf("≤ %.2f", r.aim)
	}
	verdict := "aim"
	switch {
	case r.measured.value > r.must:
		verdict = "**missed**"
	case r.measured.value > r.aim && r.aim > 0:
		verdict = "must"
	}
	return []string{r.path, strings.TrimSpace(r.measured.String() + " " + r.unit), fmt.Sprintf("≤ %.2f", r.must), aim, verdict}
}

// printTable prints the table as Markdown.
func printTable(w io.Writer, rows []row) {
	lines := [][]string{{"path", "measured (median; range of the rounds)", "must be", "aim", "reached"}}
	for _, r := range rows {
		lines = append(lines, r.cells())
	}
	printMarkdown(w, lines)
}

// printFigures prints, as Markdown, what each subject costs in absolute terms. They hold for one machine at one time.
func printFigures(w io.Writer, f figures, subjects []*subject) {
	lines := [][]string{{"", "decisions a second", "p50, µs", "server, µs of CPU", "Redis, µs of CPU"}}
	for _, s := range subjects {
		cell := func(kind string, best func([]float64) float64) string {
			values := f[figure{s.name, kind}]
			if len(values) == 0 {
				return "–"
			}
			return fmt.Sprintf("%.1f (%.1f–%.1f)", best(values), slices.Min(values), slices.Max(values))
		}
		least, most := slices.Min[[]float64], slices.Max[[]float64]
		lines = append(lines, []string{s.name, cell(rate, most), cell(p50, least), cell(serverCPU, least), cell(redisCPU, least)})
	}
	printMarkdown(w, lines)
}

// printMarkdown prints a table whose first line is its head.
func printMarkdown(w io.Writer, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, line := range lines {
		for i, cell := range line {
			fmt.Fprintf(w, "| %s%s ", cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			fmt.Fprintln(w, strings.Repeat("|---", len(widths))+"|")
		}
	}
}
