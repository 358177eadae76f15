package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// process is a program that was started to be measured.
type process struct {
	name   string
	cmd    *exec.Cmd
	ended  chan struct{}
	output *harness.Output
}

// start starts a program. It is killed when ctx ends or by stop.
func start(ctx context.Context, name, binary string, args ...string) (*process, error) {
	p := &process{name, exec.CommandContext(ctx, binary, args...), make(chan struct{}), new(harness.Output)}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

// stop kills the program and waits until it is gone.
func (p *process) stop() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.ended
}

// await waits until the program is ready; if it ends before, or not in time, the error tells what it said.
func (p *process) await(ready func() bool) error {
	deadline := time.After(startTime)
	for !ready() {
		select {
		case <-p.ended:
			return fmt.Errorf("%s has ended:\n%s", p.name, p.output)
		case <-deadline:
			return fmt.Errorf("%s is not ready after %s:\n%s", p.name, startTime, p.output)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// startTime bounds the start of a program.
const startTime = 20 * time.Second

var anAddress = regexp.MustCompile(`127\.0\.0\.1:[1-9][0-9]*`)

// address waits until the program says where it listens.
func (p *process) address() (string, error) {
	var address string
	err := p.await(func() bool {
		address = anAddress.FindString(p.output.String())
		return address != ""
	})
	return address, err
}

// cpu is the µs that all threads of the program have run. Go's threads stay, so none is missed.
func (p *process) cpu() (float64, error) { return cpuOf(p.name, p.cmd.Process.Pid) }

// cpuOf is the µs that all threads of that program have run.
func cpuOf(name string, pid int) (float64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, fmt.Errorf("/proc does not tell: %s has ended, or this is no Linux", name)
	}
	sum := 0.0
	for _, file := range files {
		ran, err := threadTime(file)
		if err != nil {
			return 0, err
		}
		sum += ran
	}
	return sum, nil
}

// mainThread is the µs that the first thread of the program has run: in Redis, the one that runs the commands.
func (p *process) mainThread() (float64, error) {
	return threadTime(fmt.Sprintf("/proc/%d/task/%[1]d/schedstat", p.cmd.Process.Pid))
}

// threadTime reads the first number of a schedstat file: ns on the CPU.
func threadTime(file string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	ran, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(ran, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return float64(ns) / 1000, nil
}
