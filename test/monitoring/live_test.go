package monitoring_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestLive: a real Prometheus scrapes the leader and the standby of a real controller that has
// much to do and some of it wrong. It evaluates every alert and every query of the dashboard without an error, the alerts
// for what is wrong are the ones that begin, every panel has data, and every series that an
// alert or a panel names exists. Other programs that it scrapes show in no panel.
func TestLive(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "prometheus") // before anything is started
	l := newLoad(t)
	d := readDashboard(t)
	p := startPrometheus(t, l.Own, l.metrics[:], startForeign(t, d))
	l.play(t)
	l.failAgain(t, p)
	checkAlerts(t, p)
	selected := selectAll(t, p, d)
	want := map[string]string{"Replicas": "2", "Leaders": "1", "Resources not followed": "1", "Record unwritable": "1"}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			checkPanel(t, p, panel.Title, selected.Replace(target.Expr), want[panel.Title])
		}
		delete(want, panel.Title)
	}
	if len(want) > 0 {
		t.Errorf("the dashboard has no panels %v", want)
	}
	checkSeries(t, p, d)
}

// wrong lists the alerts for what newLoad and play bring about. Those of an age that a test
// does not reach are left to promtool.
func wrong() []string {
	return []string{
		"LockstepImageRejected", "LockstepImageUnresolved", "LockstepNotificationsFailing", "LockstepRecordUnwritable", "LockstepReloadsFailing",
		"LockstepResourceNotFollowed", "LockstepRolloutFailed", "LockstepStopped", "LockstepVersionStopped", "LockstepWorkloadBlocked",
	}
}

// failAgain lets a refused workload fail once more after Prometheus has seen the first failures:
// a counter doesn't increase with its first sample.
func (l *load) failAgain(t testing.TB, p *prometheus) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		seen, err := p.query(t, `lockstep_reloads_total{result="failure"}`)
		return err == nil && len(seen) > 0, fmt.Sprintf("Prometheus has seen no failure: %v", err)
	})
	l.SetConfig(t, "app-0", "key", "again")
}

func checkAlerts(t *testing.T, p *prometheus) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		var active []string
		for _, r := range p.rules(t) {
			if r.Health == "err" {
				t.Fatalf("%s cannot be evaluated: %s", r.Name, r.LastError)
			}
			if r.State != "inactive" {
				active = append(active, r.Name)
			}
		}
		slices.Sort(active)
		return slices.Equal(active, wrong()), "alerts that begin (-want +got):\n" + gocmp.Diff(wrong(), active)
	})
	if got := len(p.rules(t)); got != len(readAlerts(t)) {
		t.Errorf("Prometheus has %d rules", got)
	}
}

// checkPanel fails when a query of a panel shows nothing, or something else than is wanted, where
// that is known, or another program. What a panel shows instead of nothing does not count.
// Prometheus has what is asked for after its next scrape at the latest.
func checkPanel(t *testing.T, p *prometheus, title, query, want string) {
	t.Helper()
	query = strings.TrimSuffix(query, " or vector(0)")
	var found []sample
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		var err error
		if found, err = p.query(t, query); err != nil {
			t.Fatalf("%s: %s: %v", title, query, err)
		}
		shows := slices.ContainsFunc(found, func(s sample) bool { return s.value() != "NaN" && (want == "" || s.value() == want) })
		return shows, fmt.Sprintf("%s shows %v, want %q: %s", title, found, cmp.Or(want, "anything"), query)
	})
	for _, s := range found {
		if p.isForeign(s) {
			t.Errorf("%s shows another program, %v: %s", title, s.Metric, query)
		}
	}
}

func checkSeries(t *testing.T, p *prometheus, d dashboard) {
	t.Helper()
	exist := p.values(t, "__name__")
	check := func(where, query string) {
		t.Helper()
		names := seriesIn(query)
		if len(names) == 0 {
			t.Errorf("%s names no series: %s", where, query)
		}
		for _, name := range names {
			if !slices.Contains(exist, name) {
				t.Errorf("%s names %s, which does not exist", where, name)
			}
		}
	}
	for _, a := range readAlerts(t) {
		check(a.Alert, a.Expr)
	}
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			check(panel.Title, target.Expr)
		}
	}
}
