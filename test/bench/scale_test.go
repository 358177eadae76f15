package main

import (
	"slices"
	"testing"
)

func TestWhatAFleetCouldDoFollowsFromTheDaemonsTogetherAndTheBusiestMaster(t *testing.T) {
	const name = "a run"
	f := figures{
		{name, rate}: {20_000, 18_000}, {name, p50}: {4000, 3000}, {name, p99}: {9000, 8000}, {name, loadCPU}: {30, 31},
		{name, serverCPU}: {50, 40}, {name, scriptCalls}: {0.5, 0.25, 0.4}, {name, scriptTime}: {5, 6},
		{name, toRedis}: {140, 140}, {name, fromRedis}: {20, 20}, {name, toReplica}: {0, 0},
		{name, redisNumber(0)}: {8, 9}, {name, redisNumber(1)}: {11, 10},
	}
	masters := func(n int) *fleet { return &fleet{redis: "some", masters: make([]*redisServer, n)} }
	allowed, denied := &subject{name: name, callers: 64}, &subject{name: name, callers: 64, refuses: true}
	for _, tt := range []struct {
		name  string
		run   run
		cells []string // from the daemons' µs on
	}{
		{"two masters", run{masters(2), "4 daemons", 4, "", allowed},
			[]string{"40.0", "18.0, of one 10.0", "2.5", "140; 20; 0", "100.0", "100.0"}},
		{"one Redis", run{masters(1), "4 daemons", 4, "", allowed},
			[]string{"40.0", "8.0", "2.5", "140; 20; 0", "100.0", "125.0"}},
		{"no daemons", run{masters(1), "4 stores", 0, "", allowed},
			[]string{"–", "8.0 (5.0)", "2.5", "140; 20; 0", "–", "125.0"}},
		{"all refused", run{masters(1), "1 daemon", 1, "", denied},
			[]string{"40.0", "8.0", "2.5", "140; 20; 0", "25.0", "–"}},
	} {
		if got := tt.run.cells(f)[7:]; !slices.Equal(got, tt.cells) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.cells)
		}
	}
}
