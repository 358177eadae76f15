package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var docs = filepath.Join("..", "..", "docs")

func committed(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(docs, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The whole page takes a minute; one of its quotas and one of its plots stand for it.
func TestTheCommittedPageIsWhatTheProgramWrites(t *testing.T) {
	var j jobs
	s := studyQuota(&j, full, otherQuotas[0])
	j.run()
	page := committed(t, pageName)
	for _, want := range []string{s.Tables(), s.Adversary()} {
		if !strings.Contains(page, want) {
			t.Errorf("%s does not hold what `make accuracy` would write:\n%s", pageName, want)
		}
	}
	f := new(findings)
	for _, a := range algorithms {
		f.attack = append(f.attack, timeline(a, tableQuota))
	}
	svg, err := f.attackFigure().svg()
	if err != nil {
		t.Fatal(err)
	}
	if string(svg) != committed(t, "accuracy-attack.svg") {
		t.Error("accuracy-attack.svg is not what `make accuracy` would write")
	}
}

// someLogs is one log of three clients.
var someLogs = []accessLog{{"site", map[string][]int64{"a": steady(start, 1000, 40), "b": steady(start, windowMS, 7), "c": {start}}}}

// written computes all in a short form and returns the files that the program leaves.
func written(t *testing.T) map[string]string {
	t.Helper()
	folder := t.TempDir()
	if err := compute(effort{requests: 1000, windows: 10, tries: 10, people: 100}, someLogs).write(folder); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(content)
	}
	return files
}

func TestTheSameProgramWritesTheSameBytes(t *testing.T) {
	first, second := written(t), written(t)
	if !maps.Equal(first, second) {
		t.Error("two runs differ")
	}
	if len(first) != 5 || !strings.Contains(first[pageName], "| site, 30/1m | 0 |") || strings.Contains(first[pageName], "NaN") {
		t.Errorf("%d files, and the page:\n%s", len(first), first[pageName])
	}
}

func TestWithoutLogsThePageKeepsWhatItSaysOfThem(t *testing.T) {
	f := compute(effort{requests: 1000, windows: 1, people: 100}, nil)
	page := func(old string) string {
		page, err := f.page(old)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	old := "# Old\n" + logsBegin + "seen once\n" + logsEnd + "end\n"
	if page := page(old); logsPart(page) != "seen once\n" || strings.Contains(page, "# Old") {
		t.Errorf("the page is\n%s", page)
	}
	if part := logsPart(page("")); part != "" {
		t.Errorf("without an old page it says %q of the logs", part)
	}
}

func TestThePageShowsEveryPlotAndThePlotsAreSmall(t *testing.T) {
	page := committed(t, pageName)
	plots, err := filepath.Glob(filepath.Join(docs, "accuracy-*.svg"))
	if err != nil || len(plots) != 4 {
		t.Fatalf("plots %v, %v", plots, err)
	}
	for _, path := range plots {
		name := filepath.Base(path)
		if !strings.Contains(page, "]("+name+")") {
			t.Errorf("the page does not show %s", name)
		}
		if size := len(committed(t, name)); size > 60_000 {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
}

func TestAShareIsShownWithAsManyDecimalsAsItNeeds(t *testing.T) {
	for _, test := range []struct {
		share float64
		want  string
	}{
		{0, "0"}, {1, "100.0 %"}, {0.104, "10.4 %"}, {0.01, "1.0 %"}, {0.00123, "0.12 %"}, {0.00003, "0.0030 %"}, {0.0000000001, "0.000000 %"},
	} {
		if got := percentage(test.share); got != test.want {
			t.Errorf("%v is shown as %q, want %q", test.share, got, test.want)
		}
	}
}
