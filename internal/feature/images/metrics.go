package images

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/webhook"
)

// Metrics count registry requests and answers.
type Metrics struct {
	requests    *prometheus.CounterVec
	resolutions *prometheus.CounterVec
	success     *prometheus.GaugeVec
	notified    *prometheus.CounterVec
	bounds      *prometheus.CounterVec
	now         func() time.Time
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer, now func() time.Time) *Metrics {
	m := &Metrics{
		now: now,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_registry_requests_total",
			Help: "Requests to registries, by registry, kind (ping, token, head, manifest, blob, tags) and HTTP status code; 0 means no answer.",
		}, []string{"registry", "kind", "code"}),
		resolutions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_image_resolutions_total",
			Help: "Checks for the digest that an annotation resolves to, by registry and result: success, or an error (Unreachable, Denied, Missing, Limited, Broken, Untrue, TooLarge, NoMatch, NoPlatform, Shrunk). Registries beyond the limit, which Lockstep doesn't query, are called other.",
		}, []string{"registry", "result"}),
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lockstep_registry_last_success_timestamp_seconds",
			Help: "Unix time of the last check that found a digest, by registry. Its age is time() minus this value.",
		}, []string{"registry"}),
		notified: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_image_notifications_total",
			Help: "Push notifications from registries, by format (distribution, docker-hub, ghcr, generic) and result: Checked, Ignored (no workload follows the image), Unauthorized, TooLarge, Invalid, NotLeading, Unavailable.",
		}, []string{"format", "result"}),
		bounds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lockstep_registry_bounds_total",
			Help: "How often a registry limit was reached, by bound: list-pages, list-tags and list-bytes of a tag list, tag-length (longer tags are ignored), body-bytes of a manifest or image configuration, platforms of an index, cached-platforms (the least recently used are dropped), in-flight-bytes of large answers, registries, registries-of-namespace, images-of-namespace, credentials tried for an image, pull-secrets of a workload.",
		}, []string{"bound"}),
	}
	for _, bound := range registry.Bounds() {
		m.bounds.WithLabelValues(string(bound))
	}
	r.MustRegister(m.requests, m.resolutions, m.success, m.notified, m.bounds)
	return m
}

// Exceeded counts a bound that was reached.
func (m *Metrics) Exceeded(bound registry.Bound) { m.bounds.WithLabelValues(string(bound)).Inc() }

// Forgotten drops the counts of a registry that isn't queried any more: anyone who may annotate a
// workload can name new ones.
func (m *Metrics) Forgotten(host string) {
	labels := prometheus.Labels{"registry": host}
	m.requests.DeletePartialMatch(labels)
	m.resolutions.DeletePartialMatch(labels)
	m.success.DeletePartialMatch(labels)
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
	m.resolutions.WithLabelValues(labelOf(host, err), resultOf(err)).Inc()
	if err == nil {
		m.success.WithLabelValues(host).Set(float64(m.now().Unix()))
	}
}

// otherHosts is the label of registries that are not queried because there are too many.
const otherHosts = "other"

// labelOf names a registry in a metric.
func labelOf(host string, err error) string {
	if e, ok := errors.AsType[*registry.Error](err); ok && e.Bound == registry.Hosts {
		return otherHosts
	}
	return host
}

// resultOf is the outcome of a check, as a label.
func resultOf(err error) string {
	if err == nil {
		return "success"
	}
	return string(cmp.Or(registry.KindOf(err), registry.Broken))
}

// Collector shows the last check of each followed image, read at every scrape.
type Collector struct {
	inputs *Inputs
	images *prometheus.Desc
}

// NewCollector makes a collector of the inputs.
func NewCollector(i *Inputs) *Collector {
	return &Collector{inputs: i, images: prometheus.NewDesc("lockstep_followed_images",
		"Containers with an image annotation, by registry and result of the last check: success, or an error (as in lockstep_image_resolutions_total). Containers that haven't been checked yet are left out.",
		[]string{"registry", "result"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) { to <- c.images }

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for check, n := range c.inputs.lastChecks() {
		to <- prometheus.MustNewConstMetric(c.images, prometheus.GaugeValue, float64(n), check.host, check.result)
	}
}
