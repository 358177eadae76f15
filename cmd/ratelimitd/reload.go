package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/ratelimitd/ratelimitd/internal/authz"
	"github.com/ratelimitd/ratelimitd/internal/config"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
)

// What made the daemon read its file again.
const (
	causeFile   = "file"
	causeSignal = "SIGHUP"
	causeHTTP   = "POST /-/reload"
)

// reloader puts a changed configuration in force. The new one is built aside and takes the old one's place in one step;
// if anything is wrong with it, the old one stays whole.
type reloader struct {
	source  source
	started *config.Config // what the listeners, the admin server, the store and the log's format were made from
	checks  *authz.Server
	stores  *stores
	metrics *metrics.Metrics
	level   zap.AtomicLevel
	log     *zap.Logger

	asked chan chan<- error
	text  []byte // what was read last; nil when that failed
	// warned are the warnings of the configuration in force.
	warned []config.Problem

	mu sync.Mutex
	is state
}

// state is the configuration in force and how the last reload went.
type state struct {
	config  *config.Config
	loaded  time.Time
	restart []string // what differs from the running process and needs a restart
	err     error    // of the last reload
	failed  time.Time
}

// newReloader puts the first configuration in force.
func newReloader(
	from source, first loaded, checks *authz.Server, stores *stores, m *metrics.Metrics, level zap.AtomicLevel, log *zap.Logger,
) *reloader {
	r := &reloader{
		source: from, started: first.config, checks: checks, stores: stores, metrics: m, level: level, log: log,
		asked: make(chan chan<- error), text: first.text,
	}
	r.use(first)
	return r
}

func (r *reloader) state() state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.is
}

// run reloads when the file has changed, on a signal and when asked to, one reload at a time, until ctx ends.
func (r *reloader) run(ctx context.Context, file *watcher, hangup <-chan os.Signal) {
	returnMemory(len(r.text))
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if file.settled(now) {
				_ = r.reload(causeFile) // it has logged its error
			}
		case <-hangup:
			_ = r.reload(causeSignal) // it has logged its error
		case answer := <-r.asked:
			answer <- r.reload(causeHTTP)
		}
	}
}

// ask reloads and returns what was wrong with the file.
func (r *reloader) ask(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case r.asked <- answer:
		return <-answer
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *reloader) reload(cause string) error {
	text, err := r.source.read()
	if err == nil && cause == causeFile && bytes.Equal(text, r.text) {
		return nil // only touched, or read on a signal already
	}
	r.text = text
	var next loaded
	if err == nil {
		next, err = r.source.parse(text)
	}
	if err != nil {
		r.keep(cause, err)
		return err
	}
	before := r.warned
	s := r.use(next)
	r.log.Info("configuration reloaded", append(s.fields(next.warnings, unheard(next.warnings, before)), zap.String("cause", cause))...)
	returnMemory(len(text))
	return nil
}

// use puts a configuration in force, as far as that is possible without a restart.
func (r *reloader) use(next loaded) state {
	c := next.config
	restart := r.started.RestartNeeded(c)
	if c.Log.Format != r.started.Log.Format {
		restart = append(restart, "log.format")
	}
	r.level.SetLevel(logLevel(c.Log))
	inEffect := r.inEffect(c)
	r.checks.Use(authz.Snapshot{
		Rules:  inEffect.RuleSet(),
		Answer: authz.Answer{XRateLimit: c.Response.XRateLimit, RateLimit: c.Response.RateLimit, Status: c.Response.Status},

		Replicas: c.Replicas,
	})
	r.stores.reset()
	r.warned = next.warnings
	s := state{config: inEffect, loaded: time.Now(), restart: restart}
	r.mu.Lock()
	r.is = s
	r.mu.Unlock()
	r.metrics.ConfigLoaded(s.loaded)
	r.metrics.RestartRequired(len(restart) > 0)
	return s
}

// inEffect is the configuration with the parts of the running process that a reload cannot change.
func (r *reloader) inEffect(c *config.Config) *config.Config {
	mixed := *c
	mixed.Listen, mixed.Admin, mixed.Store = r.started.Listen, r.started.Admin, r.started.Store
	mixed.Log.Format = r.started.Log.Format
	return &mixed
}

// keep leaves everything as it is and says why.
func (r *reloader) keep(cause string, err error) {
	r.mu.Lock()
	r.is.err, r.is.failed = err, time.Now()
	r.mu.Unlock()
	r.metrics.ConfigRefused()
	r.log.Error("configuration not reloaded, the old one stays in force",
		zap.String("cause", cause), zap.Strings("errors", strings.Split(err.Error(), "\n")))
}

// unheard are the warnings that are not among those from before, wherever in the file they stood.
func unheard(warnings, before []config.Problem) (fresh []config.Problem) {
	placeless := func(p config.Problem) config.Problem {
		p.Line, p.Column = 0, 0
		return p
	}
	heard := make(map[config.Problem]bool)
	for _, w := range before {
		heard[placeless(w)] = true
	}
	for _, w := range warnings {
		if !heard[placeless(w)] {
			fresh = append(fresh, w)
		}
	}
	return fresh
}

// fields tells about a configuration in a log line: how many warnings there are, and the fresh ones in full.
func (s state) fields(warnings, fresh []config.Problem) []zap.Field {
	fields := []zap.Field{zap.Int("rules", len(s.config.Rules)), zap.String("hash", s.config.Hash())}
	if len(warnings) > 0 {
		fields = append(fields, zap.Int("warnings", len(warnings)))
	}
	if len(fresh) > 0 {
		fields = append(fields, zap.Stringers("new_warnings", fresh))
	}
	if len(s.restart) > 0 {
		fields = append(fields, zap.Strings("restart_needed", s.restart))
	}
	return fields
}
