package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// A decision is a check, without what the store does, and a take from the store.
const (
	checkBenchmark = "BenchmarkCheck"
	takeBenchmark  = "BenchmarkMemoryTakeOfAHotKey"
)

// allocations runs the benchmarks of the packages and returns how often our code allocates for each decision.
func allocations(ctx context.Context) (float64, error) {
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^("+checkBenchmark+"|"+takeBenchmark+")$",
		"-benchmem", "-benchtime", "20000x", "./internal/authz", "./internal/limiter").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("go test: %w\n%s", err, out)
	}
	return sumAllocations(string(out))
}

var benchmarkLine = regexp.MustCompile(`(?m)^(Benchmark\w+)\S*\s.*\s(\d+) allocs/op`)

// sumAllocations reads what `go test -benchmem` printed: the costliest check and a take.
func sumAllocations(output string) (float64, error) {
	most := map[string]float64{}
	for _, line := range benchmarkLine.FindAllStringSubmatch(output, -1) {
		n, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			return 0, err
		}
		most[line[1]] = max(most[line[1]], n)
	}
	if len(most) != 2 {
		return 0, fmt.Errorf("no figures of %s and %s in:\n%s", checkBenchmark, takeBenchmark, output)
	}
	return most[checkBenchmark] + most[takeBenchmark], nil
}
