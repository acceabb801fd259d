package reload_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestPlanOfWhatIsNew: objects that do not exist yet, generated names, settings that begin
// and end, and a change that the API server would refuse.
func TestPlanOfWhatIsNew(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.apply(t, configMap("app-1", "key: one")+configMap("fixed", "key: one")+
		deployment("web", auto, uses("configmap/app-1"))+
		deployment("leaves", auto, uses("configmap/app-1"))+
		deployment("joins", settings.Reload+": never", uses("configmap/app-1"))+
		deployment("sealed", auto, uses("configmap/fixed")))
	s.change(t, "configmap/fixed", "{immutable: true}")
	s.run(t)
	for _, name := range []string{"web", "leaves", "sealed"} {
		s.awaitKnown(t, deploy, name, "configmap/")
		s.awaitObserved(t, "deployment/"+name)
	}
	got, _ := s.planAs(t, s.Cluster.Kubeconfig(), configMap("app-2", "key: two")+configMap("fixed", "key: two")+
		deployment("web", auto, uses("configmap/app-2"))+
		deployment("leaves", settings.Reload+": never", uses("configmap/app-1"))+
		deployment("joins", auto, uses("configmap/app-1"))+
		deployment("sealed", auto, uses("configmap/fixed"))+
		deployment("new", auto, uses("configmap/app-2"))+
		"\n---\n{apiVersion: v1, kind: Service, metadata: {name: web}}\n")
	want := map[string]planned{
		"deployment/web":    {Would: "roll by its own template", Reason: "Baseline", Because: "its template changes: it names configmap/app-2"},
		"deployment/leaves": {Would: "stop being followed", Reason: "NotFollowed", Because: "no annotation enables following it any more"},
		"deployment/joins":  {Would: "be followed from now on", Reason: "Following", Because: "configmap/app-1; the running versions become the baseline"},
		"deployment/sealed": {Would: "nothing", Reason: "InStep", Because: "the files don't change anything that it uses"},
		"deployment/new":    {Would: "start", Reason: "Baseline", Because: "it is new; follows configmap/app-2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestPlanWithoutPermissions: who may read only workloads and ConfigMaps of one namespace gets an
// answer that says what was assumed, and no content.
func TestPlanWithoutPermissions(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.apply(t, secret("db", "key: one")+configMap("app", "key: one")+
		deployment("web", auto, uses("configmap/app", "secret/db"))+deployment("plain", auto, uses("configmap/app")))
	s.run(t)
	s.awaitKnown(t, deploy, "web", "secret/db")
	person := labtest.NewAccount(t, s.Cluster, s.Namespace)
	person.Allow(t,
		labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
		labtest.Rule{Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}})
	testkit.AwaitListing(t, person, true, &appsv1.DeploymentList{}, client.InNamespace(s.Namespace))

	changed := secret("db", "key: a-secret-value")
	got, notes := s.planAs(t, person.Kubeconfig, changed)
	want := map[string]planned{
		"deployment/web": {Would: "roll once", Reason: "Reloaded", Because: "secret/db (not visible to you), after the quiet window", Estimate: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan of a Secret (-want +got):\n%s", diff)
	}
	for _, about := range []string{"the record cannot be read", "the installation key cannot be read", "statefulsets.apps is forbidden", "not visible to you"} {
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, about) }) {
			t.Errorf("no note says %q: %q", about, notes)
		}
	}
	got, _ = s.planAs(t, person.Kubeconfig, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {template: {spec: {containers: []}}}}")
	if diff := cmp.Diff(map[string]planned{"statefulset/db": {Would: "not known", Because: "it is not visible to you"}}, got); diff != "" {
		t.Errorf("plan of a StatefulSet (-want +got):\n%s", diff)
	}
	got, _ = s.planAs(t, person.Kubeconfig, configMap("app", "key: two"))
	app := "configmap/app " + short("one") + " -> " + short("two") + ", after the quiet window"
	want = map[string]planned{
		"deployment/web":   {Would: "roll once", Reason: "Reloaded", Because: app, Estimate: true},
		"deployment/plain": {Would: "roll once", Reason: "Reloaded", Because: app, Estimate: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan of a ConfigMap (-want +got):\n%s", diff)
	}

	// Whoever may read everything sees the digests, and that nothing is assumed.
	got, _ = s.planAs(t, s.Cluster.Kubeconfig(), changed)
	if w := got["deployment/web"]; w.Estimate || !strings.HasPrefix(w.Because, "secret/db ") || strings.Contains(w.Because, "visible") {
		t.Errorf("with all permissions plan says %+v", w)
	}
	stranger := labtest.NewAccount(t, s.Cluster, s.Own)
	file := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := s.ask(t, stranger.Kubeconfig, "plan", "-f", file)
	if code != 1 || !strings.Contains(stderr, "deployments.apps is forbidden") || strings.Contains(stdout+stderr, "a-secret-value") {
		t.Errorf("without any permission plan ended with %d and says %q", code, stdout+stderr)
	}
}
