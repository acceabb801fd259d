package revisions

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/monitoring"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

type metrics struct {
	attached     *prometheus.CounterVec
	unreferenced prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		attached: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_attached_objects_total",
			Help: "Revisioned objects by kind, namespace and reason: attached to the revisions that use them (Attached), not attached in observe mode (WouldAttach) or because of an error (AttachFailed).",
		}, []string{"kind", "namespace", "reason"}),
		unreferenced: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lockstep_unreferenced_objects",
			Help: "Revisioned objects that aren't used by a revision and don't have an owner.",
		}),
	}
	r.MustRegister(m.attached, m.unreferenced)
	return m
}

// count counts attached objects, those that would have been, and failures.
func (m *metrics) count(o *ownership.Owned, reason input.Reason) {
	if reason != input.Attached && reason != input.WouldAttach && reason != input.AttachFailed {
		return
	}
	m.attached.WithLabelValues(string(o.Key.Source.Kind), o.Key.Namespace, string(reason)).Inc()
}

// ForgetNamespaces drops the counts of namespaces that are not known.
func (r *Reconciler) ForgetNamespaces(known func(namespace string) bool) {
	monitoring.DropNamespaces(known, r.metrics.attached)
}
