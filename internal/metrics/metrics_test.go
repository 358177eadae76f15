package metrics

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// everything is a registry in which each metric has been touched, the time-dependent ones apart.
func everything() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	m := New(reg)
	m.Memory(func() int { return 7 }, func() Evictions { return Evictions{Expired: 1, Full: 2, Idle: 3, Refused: 4} })
	m.UnseenHeaders(func() int { return 2 })
	m.BuildInfo("v1", "abc", "go1")
	m.ConfigLoaded(time.Unix(1_700_000_000, 500_000_000))
	m.RestartRequired(true)
	m.Answered(Allowed, 70*time.Microsecond)
	m.Answered(Unavailable, 20*time.Millisecond)
	m.UntrustedHeader()
	m.ClientUnknown()
	store := m.Store("redis")
	store.Answered(300 * time.Microsecond)
	store.Failed("timeout", 20*time.Millisecond)
	m.DenyCacheHit()
	rule := m.Rule("a")
	rule.Allowed()
	rule.ShadowDenied()
	rule.KeyMissing()
	rule.InvalidCost()
	rule.Denied("limit")
	return reg
}

// The exposition is a contract with whoever reads it: names, labels, and the series that exist at 0.
func TestTheExposition(t *testing.T) {
	reg := everything()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	process := false
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "ratelimitd_") {
			names = append(names, f.GetName())
		}
		process = process || strings.HasPrefix(f.GetName(), "process_")
	}
	if !process {
		t.Error("the process's own metrics are missing")
	}
	want, err := os.Open("testdata/exposition.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = want.Close() }()
	if err := testutil.GatherAndCompare(reg, want, names...); err != nil {
		t.Error(err)
	}
}

func TestNamesFollowPrometheusCustom(t *testing.T) {
	problems, err := testutil.GatherAndLint(everything())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "ratelimitd_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestARuleThatComesAgainCountsOn(t *testing.T) { // D97
	m := New(prometheus.NewRegistry())
	m.Rule("a").Allowed()
	m.Rule("a").Allowed()
	if n := testutil.ToFloat64(m.decisions.WithLabelValues("a", "allowed")); n != 2 {
		t.Errorf("%v allowed", n)
	}
}

func TestAFailedReloadKeepsTheTimeOfTheLastGoodOne(t *testing.T) {
	m := New(prometheus.NewRegistry())
	m.ConfigLoaded(time.Unix(100, 0))
	m.ConfigRefused()
	m.RestartRequired(true)
	m.RestartRequired(false)
	if ok, at := testutil.ToFloat64(m.reloadSuccessful), testutil.ToFloat64(m.reloadTime); ok != 0 || at != 100 {
		t.Errorf("successful %v at %v", ok, at)
	}
	if n := testutil.ToFloat64(m.restartRequired); n != 0 {
		t.Errorf("restart required %v", n)
	}
}
