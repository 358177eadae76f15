// Package metrics counts what ratelimitd does, for Prometheus. Labels hold names from the configuration and fixed words,
// never anything that a client sent; every series that can be known in advance exists from the start, at 0.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Outcome is what became of one request, in the labels of ratelimitd_requests_total.
type Outcome uint8

// The outcomes.
const (
	Allowed     Outcome = iota // a rule applied and the request may pass
	Denied                     // refused by a limit (429) or by a rule (403)
	Unmatched                  // allowed because no rule applied
	Degraded                   // allowed, but not by the store, which failed
	Unavailable                // refused because the store failed (503)
)

var outcomeNames = [...]string{Allowed: "allowed", Denied: "denied", Unmatched: "unmatched", Degraded: "degraded", Unavailable: "unavailable"}

// Buckets of both histograms, in seconds: an answer from memory takes some 50 µs, one from a near Redis under a
// millisecond, and a store's whole budget is 20 ms unless the configuration says otherwise.
var durationBuckets = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3, 250e-3, 1}

// Metrics holds the metrics of one process. It is safe for concurrent use.
type Metrics struct {
	reg prometheus.Registerer

	requests        [len(outcomeNames)]prometheus.Counter
	decisionSeconds prometheus.Histogram
	untrustedHeader prometheus.Counter
	clientUnknown   prometheus.Counter

	decisions, denials, keyMissing, invalidCost *prometheus.CounterVec

	storeSeconds *prometheus.HistogramVec
	storeErrors  *prometheus.CounterVec
	denyCacheHit prometheus.Counter

	reloadSuccessful, reloadTime, restartRequired prometheus.Gauge
}

// New registers the metrics, and Go's and the process's own, with reg. It panics if reg holds any of them already: a
// process makes its metrics once and keeps them through every reload.
func New(reg prometheus.Registerer) *Metrics {
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := promauto.With(reg)
	m := &Metrics{
		reg: reg,
		decisionSeconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "ratelimitd_decision_duration_seconds", Buckets: durationBuckets,
			Help: "Time from a check request to its answer, the store included, in seconds.",
		}),
		untrustedHeader: counter(f, "ratelimitd_untrusted_header_total",
			"Requests with a client address header, such as cf-connecting-ip, that was not believed."),
		clientUnknown: counter(f, "ratelimitd_client_unknown_total",
			"Requests for which a rule needed the client address and there was none."),
		decisions: counters(f, "ratelimitd_decisions_total",
			"What each rule said of the requests it applied to: allowed, denied, or shadow_denied, which refuses nothing.", "rule", "outcome"),
		denials: counters(f, "ratelimitd_denials_total",
			"Refusals by each rule, by reason.", "rule", "reason"),
		keyMissing: counters(f, "ratelimitd_key_missing_total",
			"Requests that lacked a part of the rule's key.", "rule"),
		invalidCost: counters(f, "ratelimitd_invalid_cost_total",
			"Requests that stated a cost to the rule which is no whole number, and so cost its default.", "rule"),
		storeSeconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ratelimitd_store_duration_seconds", Buckets: durationBuckets,
			Help: "Time that one take from the store took, in seconds; result is ok or error.",
		}, []string{"store", "result"}),
		storeErrors: counters(f, "ratelimitd_store_errors_total",
			"Takes that the store failed, by reason.", "store", "reason"),
		denyCacheHit: counter(f, "ratelimitd_deny_cache_hits_total",
			"Requests refused without asking Redis, because it refused the same a moment ago or because they can never pass."),
		reloadSuccessful: gauge(f, "ratelimitd_config_last_reload_successful",
			"1 if the last load of the configuration succeeded, else 0."),
		reloadTime: gauge(f, "ratelimitd_config_last_reload_success_timestamp_seconds",
			"When the configuration was last loaded with success, in seconds since the Unix epoch."),
		restartRequired: gauge(f, "ratelimitd_config_restart_required",
			"1 if the configuration file differs from what runs in a part that only a restart applies, else 0."),
	}
	requests := counters(f, "ratelimitd_requests_total", "Requests answered, by outcome.", "outcome")
	for o, name := range outcomeNames {
		m.requests[o] = requests.WithLabelValues(name)
	}
	return m
}

// Answered counts one request and the time that its answer took.
func (m *Metrics) Answered(o Outcome, took time.Duration) {
	m.requests[o].Inc()
	m.decisionSeconds.Observe(took.Seconds())
}

// UntrustedHeader counts a request with a client address header that was not believed.
func (m *Metrics) UntrustedHeader() { m.untrustedHeader.Inc() }

// ClientUnknown counts a request whose client address was needed and is unknown.
func (m *Metrics) ClientUnknown() { m.clientUnknown.Inc() }

func counter(f promauto.Factory, name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(f promauto.Factory, name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(f promauto.Factory, name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}
