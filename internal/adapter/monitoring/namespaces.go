package monitoring

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// namespaceLabel is the label of metrics that count by namespace.
const namespaceLabel = "namespace"

// DropNamespaces removes unknown namespaces from metrics with the label "namespace".
func DropNamespaces(known func(namespace string) bool, counts ...*prometheus.CounterVec) {
	for _, c := range counts {
		for _, namespace := range namespacesOf(c) {
			if !known(namespace) {
				c.DeletePartialMatch(prometheus.Labels{namespaceLabel: namespace})
			}
		}
	}
}

// namespacesOf returns the counted namespaces, some of them more than once.
func namespacesOf(c *prometheus.CounterVec) []string {
	metrics := make(chan prometheus.Metric)
	go func() {
		defer close(metrics)
		c.Collect(metrics)
	}()
	var all []string
	for m := range metrics {
		var written dto.Metric
		if m.Write(&written) != nil {
			continue
		}
		for _, label := range written.GetLabel() {
			if label.GetName() == namespaceLabel {
				all = append(all, label.GetValue())
			}
		}
	}
	return all
}
