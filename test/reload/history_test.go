package reload_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// told is a revision of what "lockstep history" says, without what differs between runs.
type told struct {
	Revision       int
	Current, Again bool
	Changed        []struct{ What, From, To string }
	By             string
}

type history struct {
	Revisions []told
	Events    []struct{ Reason, By string }
	Notes     []string
}

func (s *stage) history(t testing.TB, kubeconfig, ref string) history {
	t.Helper()
	stdout, stderr, code := s.ask(t, kubeconfig, "history", ref, "-o", "json")
	if code != 0 {
		t.Fatalf("history ended with %d: %s", code, stderr)
	}
	var h history
	if err := json.Unmarshal([]byte(stdout), &h); err != nil {
		t.Fatalf("read %s: %v", stdout, err)
	}
	return h
}

// TestHistory: a rollout by Lockstep, one by another writer, and an undo, each by whom.
func TestHistory(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			ref := strings.ToLower(kind) + "/web"
			s.apply(t, configMap("app", "key: one")+workload(kind, "web", auto, uses("configmap/app")))
			s.awaitObserved(t, ref)
			s.run(t)
			s.awaitKnown(t, kind+".apps", "web", "configmap/app")
			s.change(t, "configmap/app", "{data: {key: two}}")
			s.AwaitEvent(t, "web", "Reloaded")
			s.awaitObserved(t, ref)
			if h := s.history(t, s.Cluster.Kubeconfig(), ref); len(h.Revisions) != 2 || h.Revisions[0].By != "Lockstep" {
				t.Errorf("after Lockstep's rollout the history is %+v", h.Revisions)
			}
			first := s.read(t, ref)
			s.apply(t, workload(kind, "web", auto, strings.ReplaceAll(uses("configmap/app"), "image: app", "image: app:2")))
			s.awaitObserved(t, ref)
			given := []struct{ What, From, To string }{{"configmap/app", "", short("two")}}
			image := []struct{ What, From, To string }{{"image/app", "app", "app:2"}}
			want := []told{
				{Revision: 3, Current: true, Changed: image, By: "kubectl-client-side-apply"},
				{Revision: 2, Changed: given, By: "Lockstep"},
				{Revision: 1, By: "not known"},
			}
			if diff := cmp.Diff(want, s.history(t, s.Cluster.Kubeconfig(), ref).Revisions); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}

			template, _, _ := unstructured.NestedMap(first.Object, "spec", "template")
			text, err := json.Marshal(template)
			if err != nil {
				t.Fatal(err)
			}
			s.change(t, ref, `{"spec":{"template":`+string(text)+`}}`)
			s.awaitObserved(t, ref)
			h := s.history(t, s.Cluster.Kubeconfig(), ref)
			back := []struct{ What, From, To string }{{"image/app", "app:2", "app"}}
			undone := told{Revision: 4, Current: true, Again: true, Changed: back, By: "reload.test"}
			if diff := cmp.Diff(undone, h.Revisions[0]); diff != "" {
				t.Errorf("after the undo (-want +got):\n%s", diff)
			}
			if kind == "Deployment" && len(h.Revisions) != 4 {
				t.Errorf("a ReplicaSet that is used again has %d turns in all, want 4: %+v", len(h.Revisions), h.Revisions)
			}
		})
	}
}

// TestHistoryOfOthers: a kind without revisions, and a person without permissions.
func TestHistoryOfOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.apply(t, configMap("app", "key: one")+deployment("web", auto, uses("configmap/app"))+strings.ReplaceAll(cronJob, "%s", uses("configmap/app")))
	h := s.history(t, s.Cluster.Kubeconfig(), "cj/nightly")
	if len(h.Revisions) > 0 || len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "doesn't keep revisions") {
		t.Errorf("of a CronJob history says %+v", h)
	}
	person := labtest.NewAccount(t, s.Cluster, s.Namespace)
	person.Allow(t, labtest.Rule{Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}})
	testkit.AwaitListing(t, person, true, &appsv1.DeploymentList{}, client.InNamespace(s.Namespace))
	h = s.history(t, person.Kubeconfig, web)
	if len(h.Notes) != 2 || !strings.Contains(h.Notes[0], "replicasets.apps is forbidden") || !strings.Contains(h.Notes[1], "events is forbidden") {
		t.Errorf("without the permissions history notes %q", h.Notes)
	}
	if _, stderr, code := s.ask(t, person.Kubeconfig, "history", "cj/nightly"); code != 1 || !strings.Contains(stderr, "cronjobs.batch \"nightly\" is forbidden") {
		t.Errorf("without any permission history ended with %d and says %q", code, stderr)
	}
	if _, stderr, code := s.ask(t, s.Cluster.Kubeconfig(), "history", "deploy/wep"); code != 1 || !strings.Contains(stderr, "not found") {
		t.Errorf("of an unknown workload history ended with %d and says %q", code, stderr)
	}
}

// TestAskAboutARollout: plan and history of an Argo Rollout.
func TestAskAboutARollout(t *testing.T) {
	t.Parallel()
	const canary = "rollout/canary"
	s := newStage(t, configMap("app", "key: one")+fmt.Sprintf(rollout, "canary", "canary", "template: {metadata: {labels: {app: canary}}, spec: {"+uses("configmap/app")+"}}"),
		labtest.KWOK, labtest.ArgoRollouts)
	s.run(t)
	s.awaitKnown(t, "Rollout.argoproj.io", "canary", "configmap/app")
	got, _ := s.planAs(t, s.Cluster.Kubeconfig(), configMap("app", "key: two"))
	if row := got[canary]; row.Would != "roll once" || row.Reason != "Reloaded" || row.Estimate {
		t.Errorf("of a Rollout plan says %+v", got)
	}
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "canary", "Reloaded")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		h := s.history(t, s.Cluster.Kubeconfig(), canary)
		return len(h.Revisions) == 2 && h.Revisions[0].Current && h.Revisions[0].By == "Lockstep", fmt.Sprintf("the history is %+v", h.Revisions)
	})
}
