package notify

import "github.com/prometheus/client_golang/prometheus"

// How messages ended, as a label.
const (
	resultSent    = "Sent"
	resultRetried = "Retried"
	resultRefused = "Refused"
	resultDropped = "Dropped"
)

// metrics are those of the notifications.
type metrics struct {
	total   *prometheus.CounterVec
	waiting *prometheus.GaugeVec
	valid   prometheus.Gauge
}

// newMetrics registers the metrics, unless there is no registry.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_notifications_total",
			Help: "Messages to notification targets, by target and result: Sent, Retried (the target didn't answer, or requested another attempt), Refused by the target, or Dropped because too many were waiting.",
		}, []string{"target", "result"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lockstep_notifications_waiting",
			Help: "Messages that wait for their batch or for another attempt, by target.",
		}, []string{"target"}),
		valid: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lockstep_notify_config_valid",
			Help: "1 if the notification targets are valid, 0 if not. While they are invalid, the previous targets stay in use.",
		}),
	}
	if r != nil {
		r.MustRegister(m.total, m.waiting, m.valid)
	}
	return m
}

// begin shows zeros: an alert sees the first failure only if there was a zero before.
func (m *metrics) begin(target string) {
	for _, result := range []string{resultSent, resultRetried, resultRefused, resultDropped} {
		m.count(target, result, 0)
	}
	m.setWaiting(target, 0)
}

func (m *metrics) count(target, result string, messages int) {
	m.total.WithLabelValues(target, result).Add(float64(messages))
}

func (m *metrics) setWaiting(target string, messages int) {
	m.waiting.WithLabelValues(target).Set(float64(messages))
}

func (m *metrics) setValid(valid bool) {
	value := 0.0
	if valid {
		value = 1
	}
	m.valid.Set(value)
}

// forget drops the counts of a target that is gone.
func (m *metrics) forget(target string) {
	m.total.DeletePartialMatch(prometheus.Labels{"target": target})
	m.waiting.DeletePartialMatch(prometheus.Labels{"target": target})
}
