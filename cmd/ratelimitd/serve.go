package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/ratelimitd/ratelimitd/internal/authz"
	"github.com/ratelimitd/ratelimitd/internal/config"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
)

func serveCommand() *cobra.Command {
	var from source
	var drain time.Duration
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Answer Envoy's checks until told to stop",
		Long: `Serve answers Envoy's checks by the rules of the file, until SIGTERM or SIGINT.

An edit of the file takes effect within two seconds, as do SIGHUP and a POST to
/-/reload on the admin address. If anything is wrong with the file, the rules in force
stay as they are. A change of listen, admin or store needs a restart.

On SIGTERM or SIGINT the readiness probes fail at once, requests are served on for the
drain time, calls that still run are finished, and the exit code is 0. Another SIGINT
stops at once.`,
		Example: `  ratelimitd serve --config config.yaml
  ratelimitd serve --config config.yaml --redis-url redis://127.0.0.1:6379/0
  curl http://127.0.0.1:9002/readyz       # the admin address says how it is`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("redis-url") && from.redisURL == "" {
				return errors.New("--redis-url: a URL is wanted; leave the flag out to use the store of the file")
			}
			if drain < 0 {
				return errors.New("--drain: a time of 0s or more is wanted")
			}
			return serve(cmd.Context(), from, drain, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from.file, "config", "", "the configuration `FILE` (required)")
	flags.StringVar(&from.redisURL, "redis-url", "", "`URL` of Redis, in place of store.redis.url in the file")
	flags.DurationVar(&drain, "drain", 3*time.Second, "how long to serve on after SIGTERM, so that callers can turn away")
	_ = cmd.MarkFlagRequired("config")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	addAddressSets(cmd, &from.addressSets)
	return cmd
}

// serve is the daemon's life: its parts in the order in which they start.
func serve(ctx context.Context, from source, drain time.Duration, stderr io.Writer) error {
	stop, hangup := signals(syscall.SIGTERM, syscall.SIGINT), signals(syscall.SIGHUP)
	defer signal.Stop(stop)
	defer signal.Stop(hangup)

	file := watchFile(from.file) // before the file is read, so that no later change is missed
	first, err := from.load()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return errReported
	}
	log, level := newLog(stderr, first.config.Log)
	registry, m := newMetrics()

	background, end := context.WithCancel(context.WithoutCancel(ctx)) // a stop lasts longer than ctx
	defer end()
	stores, err := openStores(background, first.config.Store, m, log)
	if err != nil {
		return err
	}
	defer stores.Close()

	checks := authz.NewServer(authz.Options{Store: stores.takes, Local: stores.local, Metrics: m, Log: log})
	reload := newReloader(from, first, checks, stores, m, level, log)
	ready := newReadiness(stores)
	open, err := openListeners(first.config)
	if err != nil {
		return err
	}
	d := startDaemon(open, newGRPC(checks, ready), newAdmin(registry, ready, reload, log), ready, log)
	log.Info("serving", append(reload.state().fields(first.warnings, first.warnings),
		zap.Strings("listen", open.addresses()), zap.String("admin", open.adminAddress()),
		zap.String("store", stores.Name()), redisMode(first.config), zap.String("version", buildText()))...)

	limitMemory()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer end()
	tasks.Go(func() { tuneGC(background) })
	tasks.Go(func() { reload.run(background, file, hangup) })
	tasks.Go(func() { ready.begin(background) })
	return d.untilStopped(ctx, stop, drain)
}

// redisMode is a field of the log; none without Redis.
func redisMode(c *config.Config) zap.Field {
	if c.Store.Redis == nil {
		return zap.Skip()
	}
	return zap.String("mode", c.Store.Redis.Mode)
}

func signals(which ...os.Signal) chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, which...)
	return c
}

func newMetrics() (*prometheus.Registry, *metrics.Metrics) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	release, revision := build()
	m.BuildInfo(release, revision, runtime.Version())
	return registry, m
}
