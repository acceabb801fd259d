package reloader

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// use calls every method once, and those with two results twice.
func use(m *Metrics) {
	m.received("update", stakater.ConfigMap)
	m.received("add", stakater.SecretProviderClass)
	m.processed(stakater.Secret, true, 3*time.Millisecond)
	m.processed(stakater.Secret, false, 3*time.Millisecond)
	m.scanned("Deployment", 7)
	m.matched("CronJob")
	m.acted("Rollout", "shop", true, time.Second)
	m.acted("Rollout", "shop", false, time.Second)
	m.skipped(noDataChange)
	m.skipped(notUpdated)
	m.queued(4)
	m.added()
	m.waited(2 * time.Second)
	m.retried()
	m.failed("handler_error")
}

// series lists what a scrape would show: counts, the sums of histograms, and values of gauges.
func series(t *testing.T, r *prometheus.Registry) []string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			all = append(all, fmt.Sprintf("%s{%s} %s", f.GetName(), strings.Join(labels, ","), value(m)))
		}
	}
	slices.Sort(all)
	return all
}

func value(m *dto.Metric) string {
	switch {
	case m.GetHistogram() != nil:
		return fmt.Sprintf("%d samples, %gs", m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum())
	case m.GetGauge() != nil:
		return fmt.Sprintf("%g now", m.GetGauge().GetValue())
	default:
		return fmt.Sprintf("%g", m.GetCounter().GetValue())
	}
}

// TestMetrics: dashboards and alerts of the original read these names and labels.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	use(NewMetrics(r, true))
	want := []string{
		"reloader_action_latency_seconds{workload_kind=Rollout} 2 samples, 2s",
		"reloader_action_total{result=error,workload_kind=Rollout} 1",
		"reloader_action_total{result=success,workload_kind=Rollout} 1",
		"reloader_errors_total{type=handler_error} 1",
		"reloader_events_processed_total{event_type=unknown,resource_type=secrets,result=success} 1",
		"reloader_events_received_total{event_type=add,resource_type=secretproviderclasspodstatuses} 1",
		"reloader_events_received_total{event_type=update,resource_type=configmaps} 1",
		"reloader_reconcile_duration_seconds{result=error} 1 samples, 0.003s",
		"reloader_reconcile_duration_seconds{result=success} 1 samples, 0.003s",
		"reloader_reconcile_total{result=error} 2",
		"reloader_reconcile_total{result=skipped} 1",
		"reloader_reconcile_total{result=success} 2",
		"reloader_reload_executed_total_by_namespace{namespace=shop,success=false} 1",
		"reloader_reload_executed_total_by_namespace{namespace=shop,success=true} 1",
		"reloader_reload_executed_total{success=false} 1",
		"reloader_reload_executed_total{success=true} 1",
		"reloader_retries_total{} 1",
		"reloader_skipped_total{reason=no_data_change} 1",
		"reloader_skipped_total{reason=strategy_not_updated} 1",
		"reloader_workloads_matched_total{kind=CronJob} 1",
		"reloader_workloads_scanned_total{kind=Deployment} 7",
		"reloader_workqueue_adds_total{} 1",
		"reloader_workqueue_depth{} 4 now",
		"reloader_workqueue_latency_seconds{} 1 samples, 2s",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, series(t, r)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// TestMetricsAtStart: both results of reloads start at zero, and namespaces are shown only on
// demand.
func TestMetricsAtStart(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := NewMetrics(r, false)
	started := strings.Join(series(t, r), "\n")
	for _, want := range []string{"reloader_reload_executed_total{success=true} 0", "reloader_reload_executed_total{success=false} 0"} {
		if !strings.Contains(started, want) {
			t.Errorf("at the start %q is missing:\n%s", want, started)
		}
	}
	use(m)
	if all := strings.Join(series(t, r), "\n"); strings.Contains(all, "by_namespace") {
		t.Errorf("namespaces are shown:\n%s", all)
	}
}

// TestMetricsOfPasses: what failed isn't counted as a success, and how long a change waited counts
// once.
func TestMetricsOfPasses(t *testing.T) {
	t.Parallel()
	r, registry := testReloader(EnvVars), prometheus.NewRegistry()
	r.Metrics = NewMetrics(registry, false)
	r.pending.put("shop", of())
	pass := func(problems ...error) {
		p := &pass{Reloader: r, namespace: "shop", now: start.Add(time.Minute), changes: r.pending.in("shop"), problems: problems}
		p.isReady()
		if len(problems) > 0 {
			p.owed[of().id()] = []string{"Deployment/web"}
		}
		if _, err := p.end(); err != nil {
			t.Fatal(err)
		}
	}
	pass(errors.New("refused"))
	pass()
	all := strings.Join(series(t, registry), "\n")
	for _, want := range []string{
		"reloader_reconcile_total{result=error} 2", "reloader_reconcile_total{result=success} 2", "reloader_workqueue_latency_seconds{} 1 samples, 60s",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing:\n%s", want, all)
		}
	}
}
