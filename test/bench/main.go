// Bench measures what a decision costs, beside servers that decide nothing, and prints the tables of docs/performance.md. It
// ends with exit code 1 when a figure is worse than it must be.
//
// All figures that are judged are ratios of two that were measured in turn, in the same rounds, because no machine keeps its
// speed. It runs on Linux, from the folder of the module, and starts a redis-server, several daemons and the no-op servers; all
// of them are stopped at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var (
	// full is what the table of docs/performance.md is made of.
	full = extent{rounds: 40, trial: 250 * time.Millisecond, forms: []form{headersMap, headerMap}, alone: true, keys: 1_000_000, slack: 1}
	// short finds gross regressions in half a minute, also on a busy machine.
	short = extent{rounds: 6, trial: 150 * time.Millisecond, forms: []form{aForm}, keys: 20_000, slack: 1.5}
)

var errMissed = errors.New("a figure is worse than it must be")

func main() {
	daemon := flag.String("daemon", "bin/ratelimitd", "the `binary` that is measured")
	brief := flag.Bool("short", false, "fewer and shorter rounds; every ratio may be half as much again as it must be")
	envoy := flag.Bool("envoy", false, "measure what a request costs through an Envoy")
	settings := flag.Bool("envoy-settings", false, "measure what each setting of Envoy's changes in that")
	scale := flag.Bool("scale", false, "measure several daemons on one Redis and on a Redis Cluster")
	serve := flag.String("noop", "", "serve as the no-op server of that `kind`, std or bare, and measure nothing")
	flag.Parse()
	run := func() error { return serveNoop(*serve) }
	switch {
	case *serve != "":
	case *envoy:
		run = stoppable(func(ctx context.Context) error { return benchEnvoy(ctx, *daemon) })
	case *settings:
		run = stoppable(func(ctx context.Context) error { return benchSettings(ctx, *daemon) })
	case *scale:
		run = stoppable(func(ctx context.Context) error { return benchScale(ctx, *daemon) })
	default:
		run = stoppable(func(ctx context.Context) error { return benchTwice(ctx, *daemon, *brief) })
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// stoppable lets a signal end a measurement, and all that was started for it.
func stoppable(run func(context.Context) error) func() error {
	return func() error {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return run(ctx)
	}
}

// benchTwice measures again what was worse than it must be in the short form: that may have been other work on the machine, and
// what the product does shows again.
func benchTwice(ctx context.Context, daemon string, brief bool) error {
	if !brief {
		return bench(ctx, daemon, full)
	}
	err := bench(ctx, daemon, short)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "bench: once more, because", err)
		err = bench(ctx, daemon, short)
	}
	return err
}

func bench(ctx context.Context, daemon string, e extent) error {
	allocated, err := allocations(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: starting; filling a daemon with %d keys\n", e.keys)
	l, err := newLab(ctx, daemon, e, (*lab).addRedis, (*lab).addNoops, (*lab).addMemory, (*lab).addRules, (*lab).addKeys,
		(*lab).addRedisDaemon, (*lab).addScripts)
	if err != nil {
		return err
	}
	defer l.stop()
	f, err := l.measure()
	if err != nil {
		return err
	}
	rows := table(f, e, allocated)
	printTable(os.Stdout, rows)
	fmt.Println()
	printFigures(os.Stdout, f, l.subjects)
	if len(missed(rows)) > 0 {
		return errMissed
	}
	return nil
}
