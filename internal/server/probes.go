package server

import (
	"fmt"
	"net/http"
	"strings"
)

// Check is one thing that readiness depends on.
type Check struct {
	Name string
	OK   bool
	// Detail says what is wrong and what to do, or what works.
	Detail string
}

// Readiness is whether the process does its work, and the checks behind that.
type Readiness struct {
	OK     bool
	Checks []Check
}

// Probes serves the probes beside the metrics, for a process that has only one port.
func (m *Metrics) Probes(ready func() Readiness) {
	h := probes(ready)
	m.Page("/healthz", h)
	m.Page("/readyz", h)
}

// probes answers /healthz and /readyz. Health is that the process answers at
// all: an API server that is away is no reason to restart us.
func probes(ready func() Readiness) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		now := ready()
		if !now.OK {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		if !now.OK || r.URL.Query().Has("verbose") {
			_, _ = fmt.Fprint(w, now.lines())
		}
		if now.OK {
			_, _ = fmt.Fprintln(w, "ok")
			return
		}
		_, _ = fmt.Fprintln(w, "not ready")
	})
	return mux
}

func (r Readiness) lines() string {
	var b strings.Builder
	for _, c := range r.Checks {
		mark := "[-]"
		if c.OK {
			mark = "[+]"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", mark, c.Name, c.Detail)
	}
	return b.String()
}
