package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// lab is all that is started, to be measured side by side.
type lab struct {
	ctx    context.Context
	extent extent
	daemon string // path of the binary
	dir    string // for sockets and configurations
	stops  []func()

	redis    *redisServer
	subjects []*subject
}

// extent is how much is measured.
type extent struct {
	rounds int
	trial  time.Duration
	forms  []form
	alone  bool    // single requests too, which are judged in µs, and what is not judged
	keys   int     // live buckets of the daemon that holds many
	slack  float64 // what a ratio may be, as a multiple of what it must be
}

// newLab starts everything, part by part. Stop it when it is not needed any more; after an error it is stopped already.
func newLab(ctx context.Context, daemon string, e extent, parts ...func(*lab) error) (*lab, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	l := &lab{ctx: ctx, extent: e, daemon: daemon, dir: dir}
	l.stops = append(l.stops, func() { _ = os.RemoveAll(dir) })
	for _, begin := range parts {
		if err := begin(l); err != nil {
			l.stop()
			return nil, err
		}
	}
	return l, nil
}

// stop stops everything, the last first.
func (l *lab) stop() {
	for _, stop := range slices.Backward(l.stops) {
		stop()
	}
}

func (l *lab) addRedis() (err error) {
	if l.redis, err = startRedis(l.ctx, l.dir); err == nil {
		l.stops = append(l.stops, l.redis.stop)
	}
	return err
}

// serve starts an ext_authz server.
func (l *lab) serve(name, binary string, args ...string) (*server, error) {
	p, err := l.start(name, binary, args...)
	if err != nil {
		return nil, err
	}
	return l.connect(p)
}

func (l *lab) connect(p *process) (*server, error) {
	s, err := connect(p)
	if err != nil {
		return nil, err
	}
	l.stops = append(l.stops, s.disconnect)
	return s, nil
}

// start starts a program that is stopped with all else.
func (l *lab) start(name, binary string, args ...string) (*process, error) {
	p, err := start(l.ctx, name, binary, args...)
	if err == nil {
		l.stops = append(l.stops, p.stop)
	}
	return p, err
}

// serveDaemon starts the daemon on that configuration, as a server that is asked without an Envoy.
func (l *lab) serveDaemon(name, configuration string) (*server, error) {
	p, err := l.startDaemon(name, configuration)
	if err != nil {
		return nil, err
	}
	return l.connect(p)
}

// startDaemon starts the daemon on that configuration.
func (l *lab) startDaemon(name, configuration string) (*process, error) {
	file := filepath.Join(l.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return l.start(name, l.daemon, "serve", "--config", file, "--drain", "0s")
}

// checks adds a subject: requests of so many clients for a path, in that form.
func (l *lab) checks(s *subject, to *server, f form, path string, clients int) error {
	r, err := newRequest(f, path)
	if err != nil {
		return err
	}
	s.newAsk = to.asks(l.ctx, r, clients)
	s.costs = append(s.costs, cost{serverCPU, to.cpu})
	l.subjects = append(l.subjects, s)
	return nil
}
