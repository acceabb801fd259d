package rollouts

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

type metrics struct {
	reloads   *prometheus.CounterVec
	invalid   *prometheus.CounterVec
	delivery  prometheus.Histogram
	delivered *prometheus.CounterVec
}

// newMetrics registers the metrics; count counts the workloads that are not in step.
func newMetrics(r prometheus.Registerer, count func() tally) *metrics {
	m := &metrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_reloads_total",
			Help: "Rollouts started to deliver current versions, including those that observe mode only reports, by kind, namespace, reason and result (success, failure, or conflict with another writer, which Lockstep retries).",
		}, []string{"kind", "namespace", "reason", "result"}),
		invalid: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_invalid_settings_total",
			Help: "Settings that are invalid, can't be carried out or exceed a limit, by kind and namespace of the workload and by reason. Each new one counts once.",
		}, []string{"kind", "namespace", "reason"}),
		delivery: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lockstep_delivery_seconds",
			Help:    "Time from the last change to a source until the patch that delivers it, including the quiet window.",
			Buckets: []float64{0.1, 0.5, 1, 2, 5, 6, 8, 10, 15, 30, 60, 120, 300, 900, 3600},
		}),
	}
	m.delivered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lockstep_inputs_given_total",
		Help: "Inputs delivered to workloads, by kind of the input (ConfigMap, Secret, Image) and by kind and namespace of the workload.",
	}, []string{"input", "kind", "namespace"})
	r.MustRegister(m.reloads, m.invalid, m.delivery, m.delivered, newBehind(count))
	return m
}

// behind shows the workloads that aren't in step and those that are rolled out too often,
// counted at every scrape.
type behind struct {
	count                             func() tally
	pending, oldest, blocked, busiest *prometheus.Desc
}

func newBehind(count func() tally) *behind {
	byReason := []string{"reason"}
	return &behind{
		count: count,
		pending: prometheus.NewDesc("lockstep_pending_workloads",
			"Workloads with a pending change, by the reason they wait. Reasons without workloads are left out.", byReason, nil),
		oldest: prometheus.NewDesc("lockstep_pending_oldest_timestamp_seconds",
			"Unix time at which the oldest pending change was first seen, by the reason it waits. Its age is time() minus this value. Reasons without workloads are left out.", byReason, nil),
		blocked: prometheus.NewDesc("lockstep_blocked_workloads",
			"Workloads that need a user's action, by reason: Lockstep leaves them alone until something is corrected, or they keep a version whose rollout failed (RolloutFailed). Reasons without workloads are left out.", byReason, nil),
		busiest: prometheus.NewDesc("lockstep_busiest_workload_reloads",
			"Rollouts in the last hour of the namespace's most frequently rolled workload, counted up to 100 and since this process began to lead. Namespaces without rollouts are left out.", []string{"namespace"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (b *behind) Describe(to chan<- *prometheus.Desc) {
	to <- b.pending
	to <- b.oldest
	to <- b.blocked
	to <- b.busiest
}

// Collect implements prometheus.Collector.
func (b *behind) Collect(to chan<- prometheus.Metric) {
	show := func(d *prometheus.Desc, reason input.Reason, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, string(reason))
	}
	all := b.count()
	for reason, n := range all.pending {
		show(b.pending, reason, float64(n))
		show(b.oldest, reason, float64(all.oldest[reason].UnixMilli())/1000)
	}
	for reason, n := range all.blocked {
		show(b.blocked, reason, float64(n))
	}
	for namespace, n := range all.rollouts {
		to <- prometheus.MustNewConstMetric(b.busiest, prometheus.GaugeValue, float64(n), namespace)
	}
}

func (m *metrics) count(w *kube.Workload, d Decision, now time.Time) {
	switch d.Reason {
	case input.InvalidAnnotation, input.NoTemplate, input.TooManySources, input.RecordTooNew, input.RecordFull:
		m.countInvalid(w, string(d.Reason))
	case input.Reloaded, input.WouldReload, input.Evicted, input.Refreshed, input.PutBack:
		m.reloads.WithLabelValues(w.Key.Kind, w.Key.Namespace, string(d.Reason), "success").Inc()
	default:
	}
	if !d.Delivered || d.Verb == Observe || d.Verb == Remember || d.Reason == input.AwaitsPods {
		return
	}
	var last time.Time
	for _, f := range d.Due {
		m.delivered.WithLabelValues(string(f.ID.Kind), w.Key.Kind, w.Key.Namespace).Inc()
		if f.ChangedAt.After(last) {
			last = f.ChangedAt
		}
	}
	if !last.IsZero() { // a restored version hasn't changed
		m.delivery.Observe(now.Sub(last).Seconds())
	}
}

func (m *metrics) countInvalid(w *kube.Workload, reason string) {
	m.invalid.WithLabelValues(w.Key.Kind, w.Key.Namespace, reason).Inc()
}

// countConflict counts an attempt that conflicted with another writer's: a few are
// normal, many mean that the watch is behind.
func (m *metrics) countConflict(w *kube.Workload) {
	m.reloads.WithLabelValues(w.Key.Kind, w.Key.Namespace, string(input.ReloadFailed), "conflict").Inc()
}

func (m *metrics) countFailure(w *kube.Workload) {
	m.reloads.WithLabelValues(w.Key.Kind, w.Key.Namespace, string(input.ReloadFailed), "failure").Inc()
}
