package rollouts

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// spreading shows how changes spread, counted at every scrape.
type spreading struct {
	spreads          *spreads
	stops            Stops
	rolling, stopped *prometheus.Desc
}

// addSpread registers the metrics of changes on their way.
func (m *metrics) addSpread(r prometheus.Registerer, s *spreads, stops Stops) {
	if stops == nil {
		return
	}
	r.MustRegister(&spreading{
		spreads: s, stops: stops,
		rolling: prometheus.NewDesc("lockstep_rolling_workloads", "Workloads whose rollout by Lockstep isn't proven healthy, and neither failed nor timed out.", nil, nil),
		stopped: prometheus.NewDesc("lockstep_version_stops",
			"Versions that aren't delivered to further workloads, because they failed on workloads that were healthy before, by the kind of the input and by namespace, * when all namespaces share it.", []string{"kind", "namespace"}, nil),
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
	for c, known := range s.stops.Changes() {
		if spread.Stopped(known.Failed, s.spreads.stopAfter) != "" {
			// Prometheus drops an empty label, and the namespace would be that of the controller's pod.
			count[labels{string(c.ID.Kind), cmp.Or(c.Namespace, "*")}]++
		}
	}
	for at, n := range count {
		to <- prometheus.MustNewConstMetric(s.stopped, prometheus.GaugeValue, n, at.kind, at.namespace)
	}
}
