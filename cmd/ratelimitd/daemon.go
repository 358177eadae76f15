package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// stopWithin bounds the wait for the calls that still run when the drain is over.
const stopWithin = 10 * time.Second

var errStoppedAtOnce = errors.New("stopped at once by SIGINT")

// daemon is what runs between start and stop.
type daemon struct {
	grpc   *grpc.Server
	admin  *http.Server
	ready  *readiness
	log    *zap.Logger
	failed chan error // a server that ended without being told to
}

// startDaemon serves on the open addresses.
func startDaemon(open listeners, checks *grpc.Server, admin *http.Server, ready *readiness, log *zap.Logger) *daemon {
	d := &daemon{checks, admin, ready, log, make(chan error, len(open.grpc)+1)}
	for _, l := range open.grpc {
		go func() { d.ended(l.Addr().String(), d.grpc.Serve(l)) }()
	}
	if open.admin != nil {
		go func() { d.ended(open.adminAddress(), d.admin.Serve(open.admin)) }()
	}
	return d
}

func (d *daemon) ended(address string, err error) {
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		d.failed <- fmt.Errorf("serving on %s: %w", address, err)
	}
}

// untilStopped waits for a signal, the end of ctx or a failure, and stops the servers.
func (d *daemon) untilStopped(ctx context.Context, stop <-chan os.Signal, drain time.Duration) error {
	defer d.admin.Close()
	defer d.grpc.Stop()
	select {
	case err := <-d.failed:
		return err
	case <-ctx.Done():
	case <-stop:
	}
	return d.stop(drain)
}

// stop says first that no more requests are wanted, serves those that come all the same until the drain is over, and
// lets the calls that run finish. A second SIGTERM changes nothing: who signals a whole process group may send two.
func (d *daemon) stop(drain time.Duration) error {
	again := signals(syscall.SIGINT)
	defer signal.Stop(again)
	d.ready.end()
	d.log.Info("stopping", zap.Duration("drain", drain))
	select {
	case <-time.After(drain):
	case <-again:
		return errStoppedAtOnce
	}
	d.ready.endWatches()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		d.grpc.GracefulStop()
	}()
	select {
	case <-finished:
		d.log.Info("stopped")
	case <-time.After(stopWithin):
		d.log.Warn("stopped while calls still ran", zap.Duration("waited", stopWithin))
	case <-again:
		return errStoppedAtOnce
	}
	return nil
}
