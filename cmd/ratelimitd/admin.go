package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

const adminIndex = `ratelimitd

GET  /metrics   metrics for Prometheus
GET  /livez     200 while the process runs
GET  /readyz    200 while requests may be sent here, 503 with the reason otherwise
GET  /config    the configuration in force, with every default
POST /-/reload  read the configuration file now: 200, or 400 with what is wrong
`

// newAdmin returns the HTTP server for operators and their machines.
func newAdmin(metrics prometheus.Gatherer, ready *readiness, reload *reloader, log *zap.Logger) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, adminIndex) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "alive\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { serveReady(w, ready) })
	mux.HandleFunc("GET /config", func(w http.ResponseWriter, _ *http.Request) { serveConfig(w, reload.state()) })
	mux.HandleFunc("POST /-/reload", func(w http.ResponseWriter, r *http.Request) { serveReload(w, r, reload) })
	return &http.Server{
		Handler:           http.NewCrossOriginProtection().Handler(mux), // no web page reloads a daemon on its reader's machine
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          zap.NewStdLog(log),
	}
}

func serveReady(w http.ResponseWriter, ready *readiness) {
	if reason := ready.whyNot(); reason != "" {
		http.Error(w, "not ready: "+reason, http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready\n")
}

// serveConfig writes the effective configuration under comments that say how it came to be.
func serveConfig(w http.ResponseWriter, s state) {
	last := "ok"
	if s.err != nil {
		last = "error " + s.failed.UTC().Format(time.RFC3339) + ": " + strings.ReplaceAll(s.err.Error(), "\n", "; ")
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	fmt.Fprintf(w, "# hash: %s\n# loaded: %s\n# last reload: %s\n", s.config.Hash(), s.loaded.UTC().Format(time.RFC3339), last)
	if len(s.restart) > 0 {
		fmt.Fprintf(w, "# in force only after a restart: %s\n", strings.Join(s.restart, ", "))
	}
	w.Write(s.config.Effective())
}

func serveReload(w http.ResponseWriter, r *http.Request, reload *reloader) {
	if err := reload.ask(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	io.WriteString(w, "reloaded\n")
}
