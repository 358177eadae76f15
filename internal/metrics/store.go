package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Why a take fails, in the labels of ratelimitd_store_errors_total.
var storeErrorReasons = []string{
	"timeout", "refused", "readonly", "moved", "tryagain", "clusterdown", "crossslot", "loading", "oom", "noscript",
	"noreplicas", "auth", "reply", "breaker", "connection", "other",
}

// Store counts for one store.
type Store struct {
	ok, failed prometheus.Observer
	errors     *prometheus.CounterVec
}

// Store returns the counters of the store of that name: "memory" or "redis".
func (m *Metrics) Store(name string) *Store {
	s := &Store{
		ok:     m.storeSeconds.WithLabelValues(name, "ok"),
		failed: m.storeSeconds.WithLabelValues(name, "error"),
		errors: m.storeErrors.MustCurryWith(prometheus.Labels{"store": name}),
	}
	for _, reason := range storeErrorReasons {
		s.errors.WithLabelValues(reason)
	}
	return s
}

// Answered counts a take that the store answered.
func (s *Store) Answered(took time.Duration) { s.ok.Observe(took.Seconds()) }

// Failed counts a take that the store failed. reason is one of a few fixed words.
func (s *Store) Failed(reason string, took time.Duration) {
	s.failed.Observe(took.Seconds())
	s.errors.WithLabelValues(reason).Inc()
}

// DenyCacheHit counts a request that was refused without asking the store.
func (m *Metrics) DenyCacheHit() { m.denyCacheHit.Inc() }

// Evictions is how many buckets the memory store has dropped so far, by what they were.
type Evictions struct {
	Expired, Full, Idle, Refused uint64
}

// Memory adds the metrics of the memory store: keys says how many buckets it holds now. Both functions are called at each
// scrape, from any goroutine. It panics when called twice.
func (m *Metrics) Memory(keys func() int, evictions func() Evictions) {
	m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ratelimitd_memory_keys",
		Help: "Buckets that the memory store holds.",
	}, func() float64 { return float64(keys()) }))
	m.evicted("expired", func() uint64 { return evictions().Expired })
	m.evicted("full", func() uint64 { return evictions().Full })
	m.evicted("idle", func() uint64 { return evictions().Idle })
	m.evicted("refused", func() uint64 { return evictions().Refused })
}

func (m *Metrics) evicted(reason string, count func() uint64) {
	m.reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name:        "ratelimitd_memory_evictions_total",
		Help:        "Buckets that the memory store dropped, by what they were: expired, full again, idle, or refusing.",
		ConstLabels: prometheus.Labels{"reason": reason},
	}, func() float64 { return float64(count()) }))
}
