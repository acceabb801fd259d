package reload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// usesKey is a pod specification that reads one key of a ConfigMap.
func usesKey(configMap, key string) string {
	return fmt.Sprintf("containers: [{name: app, image: app, env: [{name: A, valueFrom: {configMapKeyRef: {name: %s, key: %s}}}]}]", configMap, key)
}

// site is what is applied at first, with one value in its ConfigMaps and one image.
type site struct{ value, image string }

func (f site) manifests() string {
	withImage := func(pod string) string { return strings.ReplaceAll(pod, "image: app", "image: "+f.image) }
	// Its template has to be applied within the quiet window of its ConfigMap.
	patient := auto + ", " + settings.Quiet + ": 1h"
	held, never := auto+", "+settings.Hold+": release freeze", settings.Reload+": never"
	return configMap("app", "key: "+f.value+", other: same") + configMap("unused", "key: "+f.value) + configMap("two", "key: "+f.value) +
		deployment("web", auto, uses("configmap/app")) +
		deployment("keyed", auto, usesKey("app", "other")) +
		deployment("held", held, uses("configmap/app")) +
		strings.Replace(deployment("stopped", auto, uses("configmap/app")), "spec: {replicas: 0", "spec: {paused: true, replicas: 0", 1) +
		deployment("unasked", never, uses("configmap/app")) +
		deployment("both", patient, withImage(uses("configmap/app"))) +
		deployment("alien", never, withImage(uses("configmap/app"))) +
		deployment("back", auto, uses("configmap/first", "configmap/two")) +
		deployment("twice", auto, withImage(uses("configmap/late"))) + configMap("late", "key: "+f.value) +
		strings.ReplaceAll(cronJob, "%s", uses("configmap/app"))
}

// TestPlanIsKept: what "lockstep plan" says of manifests is what happens when they are
// applied.
func TestPlanIsKept(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.apply(t, configMap("first", "key: one")+site{"one", "app"}.manifests())
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.undoFirst(t)
	for _, name := range []string{"held", "stopped", "both", "twice", "keyed", "back"} {
		s.awaitObserved(t, "deployment/"+name)
		s.awaitKnown(t, deploy, name, "configmap/")
	}
	s.awaitKnown(t, "CronJob.batch", "nightly", "configmap/app")
	s.pass(t)
	was := s.counts(t)

	got, notes := s.planAs(t, s.Cluster.Kubeconfig(), site{"two", "app:2"}.manifests())
	if len(notes) > 0 {
		t.Errorf("plan notes %q", notes)
	}
	change := func(name string) string {
		return fmt.Sprintf("configmap/%s %s -> %s", name, short("one"), short("two"))
	}
	app := fmt.Sprintf("configmap/app %s -> %s", shortApp("one"), shortApp("two"))
	want := map[string]planned{
		"deployment/web":     {Would: "roll once", Reason: "Reloaded", Because: app + ", after the quiet window"},
		"deployment/keyed":   {Would: "nothing", Reason: "InStep", Because: "no key that it uses changes: configmap/app"},
		"deployment/held":    {Would: "wait", Reason: "Held", Because: `held by annotation lockstep.dev/hold ("release freeze"): ` + app},
		"deployment/stopped": {Would: "wait", Reason: "Paused", Because: "the workload is paused (spec.paused): " + app},
		"deployment/unasked": {Would: "nothing", Reason: "NotFollowed", Because: "no annotation enables following it"},
		"deployment/both":    {Would: "roll by its own template", Reason: "DeliveredByRollout", Because: "its template changes; " + app + " comes with it"},
		"deployment/alien":   {Would: "roll by its own template", Reason: "NotFollowed", Because: "its template changes"},
		"deployment/back":    {Would: "wait", Reason: "Undone"},
		"deployment/twice":   {Would: "roll by its own template, and once more", Reason: "Reloaded", Because: "its template changes, and then, in the order of the files, " + change("late")},
		"cronjob/nightly":    {Would: "load it with its next Job", Reason: "NextJob", Because: app},
	}
	if back := got["deployment/back"].Because; !strings.Contains(back, "configmap/first") || !strings.Contains(back, "was reverted") || !strings.HasSuffix(back, change("two")) {
		t.Errorf("of what was reverted plan says %q", back)
	}
	taken := got["deployment/back"]
	taken.Because = ""
	got["deployment/back"] = taken
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}

	s.apply(t, site{"two", "app:2"}.manifests())
	s.awaitRollouts(t, web, was["deployment/web"]+1)
	s.awaitRollouts(t, "deployment/twice", was["deployment/twice"]+2)
	s.AwaitEvent(t, "held", "Held", app)
	s.AwaitEvent(t, "stopped", "Paused", app)
	s.AwaitEvent(t, "back", "Undone", change("two"))
	s.awaitKnown(t, deploy, "both", shortApp("two"))
	s.awaitKnown(t, "CronJob.batch", "nightly", shortApp("two"))
	s.pass(t)
	for ref, further := range map[string]int{
		"deployment/web": 1, "deployment/keyed": 0, "deployment/held": 0, "deployment/stopped": 0, "deployment/unasked": 0,
		"deployment/both": 1, "deployment/alien": 1, "deployment/back": 0, "deployment/twice": 2, "cronjob/nightly": 0,
	} {
		if n := s.rollouts(t, ref) - was[ref]; n != further {
			t.Errorf("%s was rolled out %d times, and plan said %q", ref, n, got[ref].Would)
		}
	}
}

// undoFirst has the Deployment "back" reverted from its first ConfigMap's new content.
func (s *stage) undoFirst(t testing.TB) {
	t.Helper()
	s.awaitKnown(t, deploy, "back", "configmap/first")
	s.awaitObserved(t, "deployment/back")
	s.change(t, "configmap/first", "{data: {key: two}}")
	s.awaitRollouts(t, "deployment/back", 1)
	s.awaitObserved(t, "deployment/back")
	s.awaitKnown(t, deploy, "back", versionOf("two"))
	s.undo(t, "back", "")
	s.AwaitEvent(t, "back", "Undone")
}

// counts are the rollouts of all workloads of the site so far.
func (s *stage) counts(t testing.TB) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, name := range []string{"web", "keyed", "held", "stopped", "unasked", "both", "alien", "back", "twice"} {
		all["deployment/"+name] = s.rollouts(t, "deployment/"+name)
	}
	all["cronjob/nightly"] = s.rollouts(t, "cronjob/nightly")
	return all
}

// shortApp is the digest of the site's ConfigMap "app".
func shortApp(value string) string {
	return fingerprint.Hasher{}.Content(map[string]string{"key": value, "other": "same"}, nil).Version(fingerprint.AllKeys()).Short()
}
