package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ConfigLoaded says that the configuration was loaded with success at that time, at the start or by a reload.
func (m *Metrics) ConfigLoaded(at time.Time) {
	m.reloadSuccessful.Set(1)
	m.reloadTime.Set(float64(at.UnixMilli()) / 1000)
}

// ConfigRefused says that the last reload failed; the old configuration goes on.
func (m *Metrics) ConfigRefused() { m.reloadSuccessful.Set(0) }

// RestartRequired says whether the configuration file holds a change that only a restart applies.
func (m *Metrics) RestartRequired(required bool) {
	if required {
		m.restartRequired.Set(1)
	} else {
		m.restartRequired.Set(0)
	}
}

// UnseenHeaders adds the metric of headers that the rules in force read in vain. count is called at each scrape, from any
// goroutine. It panics when called twice.
func (m *Metrics) UnseenHeaders(count func() int) {
	m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ratelimitd_unseen_headers",
		Help: "Headers that the rules read and that none of the first 10000 requests since they were loaded had; the log names them.",
	}, func() float64 { return float64(count()) }))
}

// BuildInfo says what runs: ratelimitd's version, the revision it was built from and the version of Go. It panics when
// called twice.
func (m *Metrics) BuildInfo(version, revision, goversion string) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "ratelimitd_build_info",
		Help:        "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": goversion},
	})
	info.Set(1)
	m.reg.MustRegister(info)
}
