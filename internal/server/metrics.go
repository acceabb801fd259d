package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics are those of one run and the pages that are served beside them. The libraries
// keep theirs in a registry of the process, which is served too.
type Metrics struct {
	*prometheus.Registry

	pages *http.ServeMux
}

// NewMetrics returns metrics without any.
func NewMetrics() *Metrics {
	return &Metrics{Registry: prometheus.NewRegistry(), pages: http.NewServeMux()}
}

// Page serves a page at a path beside the metrics.
func (m *Metrics) Page(path string, page http.Handler) { m.pages.Handle(path, page) }

// addMetrics serves the metrics on every replica.
func addMetrics(mgr ctrl.Manager, o Options) error {
	o.Metrics.Page("/metrics", promhttp.HandlerFor(
		prometheus.Gatherers{ctrlmetrics.Registry, o.Metrics.Registry}, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError},
	))
	return o.serve(mgr, pages{"metrics", o.MetricsAddr, o.Metrics.pages})
}
