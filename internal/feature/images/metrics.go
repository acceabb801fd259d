package images

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/webhook"
)

// Metrics count what registries are asked and what they answer.
type Metrics struct {
	requests    *prometheus.CounterVec
	resolutions *prometheus.CounterVec
	success     *prometheus.GaugeVec
	notified    *prometheus.CounterVec
	now         func() time.Time
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer, now func() time.Time) *Metrics {
	m := &Metrics{
		now: now,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_registry_requests_total",
			Help: "Requests to registries, by registry, kind (ping, token, head, manifest, blob, tags) and code of the answer; code 0 is none.",
		}, []string{"registry", "kind", "code"}),
		resolutions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_image_resolutions_total",
			Help: "Checks of which digest an annotation stands for, by registry and result: success, or what went wrong (Unreachable, Denied, Missing, Limited, Broken, Untrue, NoMatch, NoPlatform, Shrunk).",
		}, []string{"registry", "result"}),
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lockstep_registry_last_success_timestamp_seconds",
			Help: "When a check last found a digest, by registry, as a Unix time: its age is time() minus this.",
		}, []string{"registry"}),
		notified: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_image_notifications_total",
			Help: "Notifications of pushes, by format (distribution, docker-hub, ghcr, generic) and result: Checked, Ignored (of no image that is followed), Unauthorized, TooLarge, Invalid, NotLeading, Unavailable.",
		}, []string{"format", "result"}),
	}
	r.MustRegister(m.requests, m.resolutions, m.success, m.notified)
	return m
}

// Observe counts a request.
func (m *Metrics) Observe(r registry.Request) {
	m.requests.WithLabelValues(r.Host, string(r.Kind), strconv.Itoa(r.Status)).Inc()
}

// Notified counts a notification.
func (m *Metrics) Notified(format string, result webhook.Result) {
	m.notified.WithLabelValues(format, string(result)).Inc()
}

// Checked counts a check.
func (m *Metrics) Checked(host string, err error) {
	if err != nil {
		kind := registry.KindOf(err)
		if kind == "" {
			kind = registry.Broken
		}
		m.resolutions.WithLabelValues(host, string(kind)).Inc()
		return
	}
	m.resolutions.WithLabelValues(host, "success").Inc()
	m.success.WithLabelValues(host).Set(float64(m.now().Unix()))
}
