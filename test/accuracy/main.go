// Accuracy measures how exactly each algorithm keeps to its limit, and writes docs/accuracy.md and its plots. It replays traffic
// through the memory store in a virtual clock, beside an exact count of what the window really holds.
//
// The same program writes the same bytes each time. With the flag -logs it replays real access logs too; without them, what the
// page says of them stays as it is.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	docs := flag.String("docs", "docs", "the `folder` that the page and its plots are written to")
	logs := flag.String("logs", "", "a `folder` of real access logs (*.log.gz, combined log format)")
	flag.Parse()
	if err := run(*docs, *logs); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(docs, folder string) error {
	logs, err := readAccessLogs(folder)
	if errors.Is(err, errNoLogs) {
		fmt.Fprintf(os.Stderr, "accuracy: %v: what the page says of real logs stays as it is\n", err)
	} else if err != nil {
		return err
	}
	return compute(full, logs).write(docs)
}
