package rollouts

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// spreading shows how changes spread, counted at every scrape.
type spreading struct {
	spreads          *spreads
	stops            Stops
	bars             func(input.Change) bool
	rolling, stopped *prometheus.Desc
}

// addSpread registers the metrics of changes on their way.
func (m *metrics) addSpread(r prometheus.Registerer, s *spreads, g Gatekeepers) {
	if g.Stops == nil {
		return
	}
	r.MustRegister(&spreading{
		spreads: s, stops: g.Stops, bars: g.Bars,
		rolling: prometheus.NewDesc("lockstep_rolling_workloads", "Workloads that Lockstep rolled out and that aren't known to be healthy, failed or timed out yet.", nil, nil),
		stopped: prometheus.NewDesc("lockstep_version_stops",
			"Versions that Lockstep doesn't deliver to further workloads, because they failed on workloads that were healthy before, by kind of the input and by namespace. The namespace is * if all namespaces share the version.", []string{"kind", "namespace"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (s *spreading) Describe(to chan<- *prometheus.Desc) {
	to <- s.rolling
	to <- s.stopped
}

// Collect implements prometheus.Collector.
func (s *spreading) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(s.rolling, prometheus.GaugeValue, float64(s.spreads.rolling()))
	type labels struct{ kind, namespace string }
	count := map[labels]float64{}
	for c, failure := range s.stops.Failures() {
		if spread.Stopped(failure.On, s.spreads.stopAfter) != "" && (s.bars == nil || s.bars(c)) {
			// Prometheus drops an empty label, and the namespace would be that of the controller's pod.
			count[labels{string(c.ID.Kind), cmp.Or(c.Namespace, "*")}]++
		}
	}
	for at, n := range count {
		to <- prometheus.MustNewConstMetric(s.stopped, prometheus.GaugeValue, n, at.kind, at.namespace)
	}
}
