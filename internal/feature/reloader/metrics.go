package reloader

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// Values of labels.
const (
	resultSuccess = "success"
	resultError   = "error"
	resultSkipped = "skipped"
	// Why something is skipped: a change, or for notUpdated a workload that shows it already.
	notSelected, noDataChange, notUpdated = "ignored_or_not_selected", "no_data_change", "strategy_not_updated"
	// unknownEvent is what the original shows as the event of every processed change.
	unknownEvent = "unknown"
)

// Metrics are those of the original, with its names and labels.
type Metrics struct {
	reloads    reloadMetrics
	reconciles reconcileMetrics
	queue      queueMetrics
	events     eventMetrics
	workloads  workloadMetrics
}

// reloadMetrics are about writes to workloads.
type reloadMetrics struct {
	executed, actions *prometheus.CounterVec
	latency           *prometheus.HistogramVec
	// byNamespace is nil unless it is enabled.
	byNamespace *prometheus.CounterVec
}

// reconcileMetrics are about changes of sources.
type reconcileMetrics struct {
	total, skipped, errors *prometheus.CounterVec
	duration               *prometheus.HistogramVec
}

// queueMetrics are about the changes that wait.
type queueMetrics struct {
	depth         prometheus.Gauge
	adds, retries prometheus.Counter
	latency       prometheus.Histogram
}

// eventMetrics are about what the watches of sources report.
type eventMetrics struct{ received, processed *prometheus.CounterVec }

// workloadMetrics are about the workloads that a change is compared with.
type workloadMetrics struct{ scanned, matched *prometheus.CounterVec }

// NewMetrics registers the metrics. The counter by namespace is optional, because its number of
// series grows with the cluster.
func NewMetrics(r prometheus.Registerer, byNamespace bool) *Metrics {
	f := factory{r}
	m := &Metrics{
		reloads: reloadMetrics{
			executed: f.counters("reload_executed_total", "Writes that reload a workload, by success.", "success"),
			actions:  f.counters("action_total", "Writes that reload a workload, by its kind and result.", "workload_kind", "result"),
			latency:  f.histograms("action_latency_seconds", "Duration of a write that reloads a workload, by its kind.", "workload_kind"),
		},
		reconciles: reconcileMetrics{
			total:    f.counters("reconcile_total", "Handled source changes, by result. Each change counts twice, as in the original.", "result"),
			skipped:  f.counters("skipped_total", "Changes and workloads that were skipped, by reason.", "reason"),
			errors:   f.counters("errors_total", "Changes that could not be handled, by type. Lockstep tries them again.", "type"),
			duration: f.histograms("reconcile_duration_seconds", "Duration of handling one source change, by result.", "result"),
		},
		queue: newQueueMetrics(f),
		events: eventMetrics{
			received:  f.counters("events_received_total", "Source events, by event type and resource.", "event_type", "resource_type"),
			processed: f.counters("events_processed_total", "Handled source events, by resource and result. The event type is always unknown, as in the original.", "event_type", "resource_type", "result"),
		},
		workloads: workloadMetrics{
			scanned: f.counters("workloads_scanned_total", "Workloads that were listed for a change, by kind.", "kind"),
			matched: f.counters("workloads_matched_total", "Workloads that a change reloads, by kind.", "kind"),
		},
	}
	if byNamespace {
		m.reloads.byNamespace = f.counters("reload_executed_total_by_namespace", "Writes that reload a workload, by success and namespace.", "success", "namespace")
	}
	for _, ok := range []bool{true, false} {
		m.reloads.executed.WithLabelValues(strconv.FormatBool(ok)) // An alert sees the first failure only if there was a zero before.
	}
	return m
}

func newQueueMetrics(f factory) queueMetrics {
	q := queueMetrics{
		depth:   prometheus.NewGauge(prometheus.GaugeOpts(options("workqueue_depth", "Source changes that are waiting."))),
		adds:    prometheus.NewCounter(prometheus.CounterOpts(options("workqueue_adds_total", "Source changes that were queued."))),
		retries: prometheus.NewCounter(prometheus.CounterOpts(options("retries_total", "Further attempts to handle changes."))),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metricPrefix, Name: "workqueue_latency_seconds", Help: "How long a change waited.",
		}),
	}
	f.MustRegister(q.depth, q.adds, q.retries, q.latency)
	return q
}

// metricPrefix begins the name of each metric.
const metricPrefix = "reloader"

func options(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: metricPrefix, Name: name, Help: help}
}

// factory makes metrics and registers them.
type factory struct{ prometheus.Registerer }

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	made := prometheus.NewCounterVec(prometheus.CounterOpts(options(name, help)), labels)
	f.MustRegister(made)
	return made
}

func (f factory) histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	made := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: metricPrefix, Name: name, Help: help}, labels)
	f.MustRegister(made)
	return made
}

// Resource is the plural name of the watched resource of a type, as metrics and events show it.
func Resource(t stakater.Type) string { return kube.ResourceName(kindOf(t), "") }

// received counts an event of a watch: add, update or delete.
func (m *Metrics) received(event string, t stakater.Type) {
	m.events.received.WithLabelValues(event, Resource(t)).Inc()
}

// processed counts a change that was handled. One that failed is tried again, so it doesn't
// count as processed.
func (m *Metrics) processed(t stakater.Type, ok bool, took time.Duration) {
	m.reconciles.total.WithLabelValues(result(ok)).Add(2)
	m.reconciles.duration.WithLabelValues(result(ok)).Observe(took.Seconds())
	if ok {
		m.events.processed.WithLabelValues(unknownEvent, Resource(t), resultSuccess).Inc()
	}
}

// scanned counts workloads of a kind that were listed.
func (m *Metrics) scanned(kind string, n int) {
	m.workloads.scanned.WithLabelValues(kind).Add(float64(n))
}

// matched counts a workload that a change reloads.
func (m *Metrics) matched(kind string) {
	m.workloads.matched.WithLabelValues(kind).Inc()
}

// acted counts a write to a workload.
func (m *Metrics) acted(kind, namespace string, ok bool, took time.Duration) {
	success := strconv.FormatBool(ok)
	m.reloads.executed.WithLabelValues(success).Inc()
	m.reloads.actions.WithLabelValues(kind, result(ok)).Inc()
	m.reloads.latency.WithLabelValues(kind).Observe(took.Seconds())
	if m.reloads.byNamespace != nil {
		m.reloads.byNamespace.WithLabelValues(success, namespace).Inc()
	}
}

// skipped counts a change or a workload that isn't acted on.
func (m *Metrics) skipped(reason string) {
	m.reconciles.skipped.WithLabelValues(reason).Inc()
	if reason != notUpdated {
		m.reconciles.total.WithLabelValues(resultSkipped).Inc()
	}
}

// queued sets how many changes wait.
func (m *Metrics) queued(depth int) {
	m.queue.depth.Set(float64(depth))
}

// added counts a change that was queued.
func (m *Metrics) added() {
	m.queue.adds.Inc()
}

// waited records how long a change was queued.
func (m *Metrics) waited(d time.Duration) {
	m.queue.latency.Observe(d.Seconds())
}

// retried counts another attempt.
func (m *Metrics) retried() {
	m.queue.retries.Inc()
}

// failed counts a change that could not be handled: handler_error.
func (m *Metrics) failed(kind string) {
	m.reconciles.errors.WithLabelValues(kind).Inc()
}

func result(ok bool) string {
	if ok {
		return resultSuccess
	}
	return resultError
}
