package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// metric is one row of the reference.
type metric struct{ name, kind, labels, help string }

// catalogue is a registry that only records the registered metrics.
type catalogue struct{ metrics []metric }

// Register implements prometheus.Registerer.
func (c *catalogue) Register(collector prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		collector.Describe(descriptions)
	}()
	var wrong []error
	for d := range descriptions {
		m, err := parse(d.String())
		m.kind = kindOf(collector, m.name)
		c.metrics = append(c.metrics, m)
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// MustRegister implements prometheus.Registerer.
func (c *catalogue) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		if err := c.Register(collector); err != nil {
			panic(err)
		}
	}
}

// Unregister implements prometheus.Registerer.
func (c *catalogue) Unregister(prometheus.Collector) bool { return false }

// parse parses a description, whose fields the library shows only as text: Desc{fqName: "a",
// help: "b", constLabels: {}, variableLabels: {c,d}}.
func parse(text string) (metric, error) {
	parts := regexp.MustCompile(`^Desc\{fqName: "(.*?)", help: "(.*?)", .*variableLabels: \{(.*)\}\}$`).FindStringSubmatch(text)
	if parts == nil {
		return metric{}, fmt.Errorf("unexpected description of a metric: %s", text)
	}
	m := metric{name: parts[1], help: parts[2]}
	if parts[3] != "" {
		m.labels = "`" + strings.ReplaceAll(parts[3], ",", "`, `") + "`"
	}
	return m, nil
}

// kindOf is the type that Prometheus shows. Names of counters end in _total, which the
// linter checks.
func kindOf(c prometheus.Collector, name string) string {
	switch c.(type) {
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

func metricsPage() (string, error) {
	all := &catalogue{}
	if err := run.DocumentMetrics(all); err != nil {
		return "", err
	}
	return `# Metrics

The controller and the agent in the pod (` + "`lockstep-sync`" + `) each serve Prometheus metrics at ` + "`/metrics`" + `.
[Alerts](alerts.md) contains ready-made Prometheus rules and a Grafana dashboard.

## Controller

Served on ` + "`--metrics-addr`" + ` (default ` + "`:8080`" + `).

` + metricsTable(all.metrics) + `
[Reasons](reasons.md) lists the values of the label ` + "`reason`" + `. The libraries add their own metrics:
` + "`workqueue_*` and `controller_runtime_*` (the loops are called `follow` and `revisions`), `rest_client_requests_total`" + `
(requests to the API server by verb and code), ` + "`leader_election_master_status`" + `, ` + "`go_*`" + ` and ` + "`process_*`" + `.

## Agent

Served on ` + "`--health-addr`" + `, which is unset by default. [Sync](sync.md) explains generations, stages and health.

` + metricsTable(agentMetrics()), nil
}

// agentMetrics are the metrics of the agent, which has no metrics library.
func agentMetrics() []metric {
	var all []metric
	for _, m := range podsync.DocumentMetrics() {
		labels := slices.Sorted(maps.Keys(m.Samples[0].Labels))
		row := metric{name: m.Name, kind: string(m.Type), help: m.Help}
		if len(labels) > 0 {
			row.labels = "`" + strings.Join(labels, "`, `") + "`"
		}
		all = append(all, row)
	}
	return all
}

func metricsTable(metrics []metric) string {
	slices.SortFunc(metrics, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	t := newTable("metric", "type", "labels", "meaning")
	for _, m := range metrics {
		t.row("`"+m.name+"`", m.kind, m.labels, m.help)
	}
	return t.String()
}
