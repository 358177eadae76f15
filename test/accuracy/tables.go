package main

import (
	"fmt"
	"strconv"
	"strings"
)

// measure is one way to look at how an algorithm did.
type measure struct {
	name string
	show func(result) string
}

var measures = []measure{
	{"Wrongly admitted, of all requests", result.WronglyAdmitted},
	{"Wrongly refused, of all requests", result.WronglyRefused},
	{"Admitted, relative to the exact log", result.Relative},
	{"Peak: the most in any window, relative to the limit", result.Peak},
}

// result is how one algorithm did on one trace, beside the exact log.
type result struct {
	outcome, exact outcome
	quota          int
}

// result returns how the algorithm of that index did.
func (r row) result(algorithm int) result {
	return result{r.outcomes[algorithm], r.outcomes[0], r.quota}
}

// WronglyAdmitted is the share of the requests that passed although the window was full.
func (r result) WronglyAdmitted() string {
	return percent(r.outcome.WronglyAdmitted, r.outcome.Requests)
}

// WronglyRefused is the share of the requests that were refused although the window had room.
func (r result) WronglyRefused() string { return percent(r.outcome.WronglyRefused, r.outcome.Requests) }

// Relative is how many passed for each that the exact log let pass.
func (r result) Relative() string {
	return fmt.Sprintf("%.1f %%", 100*float64(r.outcome.Admitted)/float64(r.exact.Admitted))
}

// Peak is how full a window was at the most.
func (r result) Peak() string { return times(r.outcome.Peak, r.quota) }

func times(n int64, quota int) string {
	return fmt.Sprintf("%.2f ×", float64(n)/float64(quota))
}

func percent(n, of int64) string { return percentage(float64(n) / float64(of)) }

// percentage shows a share with two digits or more, and as many decimals as a small one needs.
func percentage(share float64) string {
	p := 100 * share
	decimals := 1
	for least := 1.0; p > 0 && p < least && decimals < 6; least /= 10 {
		decimals++
	}
	if p == 0 {
		return "0"
	}
	return strconv.FormatFloat(p, 'f', decimals, 64) + " %"
}

// table is a Markdown table. The first column is text, the others are figures.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	b.WriteString("|---|" + strings.Repeat("---:|", len(head)-1) + "\n")
	for _, cells := range rows {
		line(cells)
	}
	return b.String()
}

// outcomeTables is a table for each measure: a row for each trace, a column for each algorithm.
func outcomeTables(title string, rows []row, label func(row) string) string {
	head := []string{title}
	for _, a := range algorithms {
		head = append(head, "`"+a.String()+"`")
	}
	var b strings.Builder
	for i, m := range measures {
		if i > 0 {
			b.WriteString("\n")
		}
		cells := make([][]string, len(rows))
		for i, r := range rows {
			cells[i] = []string{label(r)}
			for a := range algorithms {
				cells[i] = append(cells[i], m.show(r.result(a)))
			}
		}
		fmt.Fprintf(&b, "**%s**\n\n%s", m.name, table(head, cells))
	}
	return b.String()
}

// Tables shows the traces.
func (s *quotaStudy) Tables() string {
	return outcomeTables("traffic", s.rows, func(r row) string { return r.name })
}

// Adversary shows what the adversary found.
func (s *quotaStudy) Adversary() string {
	var cells [][]string
	for i, w := range s.worst {
		cells = append(cells, []string{
			"`" + algorithms[i].String() + "`",
			times(w.peak, s.Quota),
			fmt.Sprintf("%.0f %%", 100*w.least), fmt.Sprintf("%.0f %%", 100*w.most),
			strconv.FormatInt(w.mostFree, 10),
		})
	}
	return table([]string{"algorithm", "highest peak", "fewest admitted, relative to the exact log", "most", "most places free at a refusal"}, cells)
}

// Tables shows the logs.
func (s *logStudy) Tables() string {
	return outcomeTables("log, limit", s.rows, func(r row) string { return fmt.Sprintf("%s, %d/1m", r.name, r.quota) })
}

// Verdicts shows the logs and the share of the counter's verdicts that are wrong in the open loop.
func (s *logStudy) Verdicts() string {
	head := []string{"log", "requests", "clients", "mean difference"}
	for _, quota := range s.quotas {
		head = append(head, fmt.Sprintf("wrong at %d/1m", quota))
	}
	var cells [][]string
	for i, l := range s.logs {
		v := s.verdicts[i]
		line := []string{l.name, strconv.Itoa(l.requests()), strconv.Itoa(len(l.clients)), percentage(v.meanDifference())}
		for _, quota := range s.quotas {
			line = append(line, percentage(v.wrong()[quota]))
		}
		cells = append(cells, line)
	}
	return table(head, cells)
}
