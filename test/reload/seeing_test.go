package reload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

func short(value string) string {
	return fingerprint.Hasher{}.Content(map[string]string{"key": value}, nil).Version(fingerprint.AllKeys()).Short()
}

// TestSeeing: events name the source and from what to what, each rollout its own,
// and the metrics count what happened.
func TestSeeing(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple()+
		deployment("observed", auto+", "+settings.Observe+": \"true\"", uses("configmap/app"))+
		deployment("held", auto+", "+settings.Hold+": freeze", uses("configmap/app")))
	_, metric := s.runMeasured(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.awaitKnown(t, deploy, "observed", "configmap/app")
	s.awaitKnown(t, deploy, "held", "configmap/app")
	for i, step := range [][2]string{{"one", "two"}, {"two", "three"}} {
		s.change(t, "configmap/app", "{data: {key: "+step[1]+"}}")
		s.awaitRollouts(t, web, i+1)
		change := fmt.Sprintf("configmap/app %s -> %s", short(step[0]), short(step[1]))
		s.AwaitEvent(t, "web", "Normal Reloaded rolled out "+change)
		s.AwaitEvent(t, "observed", "Normal WouldReload", change)
		s.AwaitEvent(t, "held", "Warning Held", "freeze", "configmap/app "+short("one")+" -> "+short(step[1]))
	}
	s.witness.Pass(t)

	series := func(name, reason string) string {
		return fmt.Sprintf(`lockstep_%s{kind="Deployment",namespace=%q,reason=%q,result="success"}`, name, s.Namespace, reason)
	}
	witnessed := float64(s.rollouts(t, "deployment/witness"))
	wants := map[string]float64{
		series("reloads_total", "Reloaded"):                                           2 + witnessed,
		series("reloads_total", "WouldReload"):                                        2,
		"lockstep_delivery_seconds_count":                                             2 + witnessed,
		`lockstep_pending_workloads{reason="Held"}`:                                   1,
		`lockstep_tracked_objects{role="workload"}`:                                   4,
		`lockstep_state_writes_total{result="failure"}`:                               0,
		`lockstep_resource_followed{resource="namespaces"}`:                           1,
		"lockstep_resource_followed{resource=\"deployments in " + s.Namespace + "\"}": 1,
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		var wrong []string
		for name, want := range wants {
			if got := metric(name); got != want {
				wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", name, got, want))
			}
		}
		return len(wrong) == 0, strings.Join(wrong, "\n")
	})
	for _, name := range []string{
		`lockstep_tracked_objects{role="source"}`, `lockstep_state_writes_total{result="success"}`, "lockstep_delivery_seconds_sum",
		`workqueue_adds_total{controller="follow",name="follow"}`,
	} {
		if metric(name) <= 0 {
			t.Errorf("%s is %v, want more", name, metric(name))
		}
	}
}
