package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

//go:embed accuracy.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("accuracy.md").Parse(pageText))

// pageName is the page's file.
const pageName = "accuracy.md"

// The part of the page that needs the real logs lies between these lines.
const (
	logsBegin = "<!-- the real logs -->\n"
	logsEnd   = "<!-- the real logs end -->\n"
)

// write writes the page and its plots into a folder.
func (f *findings) write(folder string) error {
	old, err := os.ReadFile(filepath.Join(folder, pageName))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	files, err := f.plots()
	if err != nil {
		return err
	}
	page, err := f.page(string(old))
	if err != nil {
		return err
	}
	files[pageName] = []byte(page)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// page writes the page. Without logs it takes what the old page says of them.
func (f *findings) page(old string) (string, error) {
	var b strings.Builder
	if err := pageTemplate.Execute(&b, f); err != nil {
		return "", err
	}
	page := b.String()
	if f.Logs == nil {
		page = strings.Replace(page, logsBegin, logsBegin+logsPart(old), 1)
	}
	return page, nil
}

// logsPart is the part of a page that needs the real logs; empty if it has none.
func logsPart(page string) string {
	_, rest, _ := strings.Cut(page, logsBegin)
	part, _, found := strings.Cut(rest, logsEnd)
	if !found {
		return ""
	}
	return part
}

// Result is how the algorithm of that name did on a trace, with tableQuota.
func (f *findings) Result(algorithm, trace string) (result, error) {
	a := slices.IndexFunc(algorithms, func(a limiter.Algorithm) bool { return a.String() == algorithm })
	i := slices.IndexFunc(f.Main.rows, func(r row) bool { return r.name == trace })
	if a < 0 || i < 0 {
		return result{}, fmt.Errorf("no result of %q on %q", algorithm, trace)
	}
	return f.Main.rows[i].result(a), nil
}

// Customers is the share of wrong verdicts on clients that use what they have paid for.
func (f *findings) Customers() string { return percentage(f.paying[0].wrong()[tableQuota]) }

// CustomersInBursts is the same for clients that come in bursts.
func (f *findings) CustomersInBursts() string { return percentage(f.paying[1].wrong()[tableQuota]) }

// BurstBefore is what the counter made of a full burst just before a boundary.
func (f *findings) BurstBefore() (result, error) { return f.Result("sliding_counter", burstBefore) }

// MeanDifference is the counter's, for the mix.
func (m mix) MeanDifference() string { return percentage(m.verdicts.meanDifference()) }

// Population shows the mixes with several limits.
func (f *findings) Population() string {
	head := []string{"limit a minute", "requests from clients at 0.8 to 1.25 times that"}
	for _, m := range f.Mixes {
		head = append(head, "wrong, "+m.Name)
	}
	var cells [][]string
	for _, quota := range []int{10, 30, 100, 300, 600, 1000, 3000, 10_000} {
		line := []string{strconv.Itoa(quota), percentage(f.Mixes[0].near(float64(quota)))}
		for _, m := range f.Mixes {
			line = append(line, percentage(m.wrong[quota]))
		}
		cells = append(cells, line)
	}
	return table(head, cells)
}
