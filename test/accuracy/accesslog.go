package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// accessLog is who asked when, according to one web server's log.
type accessLog struct {
	name    string
	clients map[string][]int64 // the instants of each client's requests, ms since the Unix epoch
}

// byClient returns the requests of each client, in an order that does not change.
func (l accessLog) byClient() [][]int64 {
	var all [][]int64
	for _, client := range slices.Sorted(maps.Keys(l.clients)) {
		all = append(all, l.clients[client])
	}
	return all
}

// requests is the number of lines in the log.
func (l accessLog) requests() int {
	n := 0
	for _, times := range l.clients {
		n += len(times)
	}
	return n
}

// observe gives the counter's verdicts on each client, from its first request on.
func (l accessLog) observe() *verdicts {
	v := newVerdicts()
	for _, times := range l.byClient() {
		v.restart() // the clients' times overlap
		v.watch(times, 0)
	}
	return v
}

// errNoLogs says that a folder is missing, or holds no logs.
var errNoLogs = errors.New("no access logs (*.log.gz)")

// readAccessLogs reads the logs of a folder, in the combined log format and gzipped, in the order of their names.
func readAccessLogs(folder string) ([]accessLog, error) {
	paths, err := fs.Glob(os.DirFS(folder), "*.log.gz")
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%q: %w", folder, errNoLogs)
	}
	logs := make([]accessLog, len(paths))
	for i, path := range paths {
		if logs[i], err = readAccessLog(filepath.Join(folder, path)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return logs, nil
}

func readAccessLog(path string) (accessLog, error) {
	f, err := os.Open(path)
	if err != nil {
		return accessLog{}, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return accessLog{}, err
	}
	seconds := make(map[string][]int64)
	lines := bufio.NewScanner(unzipped)
	for n := 1; lines.Scan(); n++ {
		client, at, err := parseLine(lines.Text())
		if err != nil {
			return accessLog{}, fmt.Errorf("line %d: %w", n, err)
		}
		seconds[client] = append(seconds[client], at.Unix())
	}
	l := accessLog{strings.TrimSuffix(filepath.Base(path), ".log.gz"), make(map[string][]int64)}
	for client, times := range seconds {
		l.clients[client] = spread(times)
	}
	return l, lines.Err()
}

// parseLine reads who sent a request, and when.
func parseLine(line string) (client string, at time.Time, err error) {
	client, rest, _ := strings.Cut(line, " ")
	_, rest, _ = strings.Cut(rest, "[")
	stamp, _, found := strings.Cut(rest, "]")
	if !found {
		return "", time.Time{}, fmt.Errorf("%q is not a line of the combined log format", line)
	}
	at, err = time.Parse("02/Jan/2006:15:04:05 -0700", stamp)
	return client, at, err
}

// spread puts requests in order and, as a log knows only seconds, those of one second evenly into it: seconds become ms.
func spread(seconds []int64) []int64 {
	slices.Sort(seconds)
	var times []int64
	for len(seconds) > 0 {
		n, _ := slices.BinarySearch(seconds, seconds[0]+1)
		times = append(times, steady(seconds[0]*1000, 1000, n)...)
		seconds = seconds[n:]
	}
	return times
}
