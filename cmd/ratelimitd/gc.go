package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// spareHeap is how much garbage may lie about before it is collected. A daemon without many buckets lives in some
	// megabytes: collected whenever that doubles, a good part of its CPU would go into it.
	spareHeap = 64 << 20
	// mostGCPercent bounds what that comes to.
	mostGCPercent = 800
	// largeConfig is the size of a file, some thousands of rules, whose reading leaves more garbage behind than may lie about.
	largeConfig = 256 << 10
	// tuneInterval is how often the heap is looked at.
	tuneInterval = 5 * time.Second
)

// limitMemory makes the collector work harder before the container's memory limit is reached. GOMEMLIMIT goes before it.
func limitMemory() {
	_, _ = memlimit.Set(memlimit.WithProvider(memlimit.FromCgroup)) // without a limit there is nothing to do
}

// tuneGC lets a small heap be collected less often, until ctx ends. GOGC goes before it.
func tuneGC(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	ticks := time.NewTicker(tuneInterval)
	defer ticks.Stop()
	for last := 0; ; {
		metrics.Read(live)
		if percent := gcPercent(live[0].Value.Uint64()); percent != last {
			debug.SetGCPercent(percent)
			last = percent
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// returnMemory returns to the system what reading a configuration of that size has left behind, which is several times what is kept
// of it: after a start or a reload nothing needs so much memory again. It takes about as long as a collection.
func returnMemory(size int) {
	if size >= largeConfig {
		debug.FreeOSMemory()
	}
}

// gcPercent is by how much a heap of that size may grow before it is collected.
func gcPercent(live uint64) int {
	return int(min(mostGCPercent, max(100, spareHeap*100/max(live, 1))))
}
