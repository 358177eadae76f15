// Package test holds the tests of the project as a whole.
package test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/ratelimitd/ratelimitd/"

// mayImport is the table of docs/architecture.md: the packages of this module that each package may import.
var mayImport = map[string]string{
	"cmd/ratelimitd":   "internal/config internal/authz internal/metrics internal/rules internal/limiter",
	"internal/config":  "internal/rules internal/limiter",
	"internal/authz":   "internal/rules internal/limiter internal/metrics",
	"internal/metrics": "",
	"internal/rules":   "internal/limiter",
	"internal/limiter": "lua",
	"lua":              "",
	"test/accuracy":    "internal/limiter",
	"test/bench":       "internal/limiter test/harness",
	"test/harness":     "",
	"test/history":     "",
	"test/upstream":    "",
}

// onlyFor says which packages may use what the others must not know.
var onlyFor = map[string]string{
	"github.com/envoyproxy/":        "internal/authz cmd/ratelimitd test/bench",
	"google.golang.org/protobuf":    "internal/authz cmd/ratelimitd test/bench",
	"github.com/redis/":             "internal/limiter internal/config test/bench test/harness",
	"go.yaml.in/":                   "internal/config test/bench", // bench: the settings of an Envoy
	"github.com/prometheus/":        "internal/metrics cmd/ratelimitd",
	"net/http":                      "cmd/ratelimitd internal/authz test/harness test/upstream", // authz: names of status codes
	"google.golang.org/grpc/health": "cmd/ratelimitd",
	"gonum.org/":                    "test/accuracy",
}

func TestPackagesImportOnlyWhatTheArchitectureAllows(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		allowed, ok := mayImport[pkg]
		if !ok {
			if len(fields) > 1 {
				t.Errorf("package %s is not in the table", pkg)
			}
			continue
		}
		seen++
		for _, imported := range fields[1:] {
			if own, ok := strings.CutPrefix(imported, module); ok && !contains(allowed, own) {
				t.Errorf("%s imports %s", pkg, own)
			}
			for prefix, users := range onlyFor {
				if strings.HasPrefix(imported, prefix) && !contains(users, pkg) {
					t.Errorf("%s imports %s, which is for %s alone", pkg, imported, users)
				}
			}
		}
	}
	if seen != len(mayImport) {
		t.Errorf("the table has %d packages, of which %d exist", len(mayImport), seen)
	}
}

func contains(list, word string) bool {
	for _, w := range strings.Fields(list) {
		if w == word {
			return true
		}
	}
	return false
}

// D115: a container from scratch has no time zones of its own.
func TestTheDaemonBringsTheTimeZonesWithIt(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports " "}}`, module+"cmd/ratelimitd").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if !contains(string(out), "time/tzdata") {
		t.Errorf("cmd/ratelimitd imports %s", out)
	}
}
