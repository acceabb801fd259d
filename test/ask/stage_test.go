package ask_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// stage is a world with a controller, whose log is read, and the commands that ask it.
type stage struct {
	*testkit.World
	controller *testkit.Controller
	// kubeconfig is who asks; flags are further flags of the commands.
	kubeconfig string
	flags      []string
	// gallery is the registry, nil where no scene needs one.
	gallery *gallery
}

func newStage(t testing.TB, needs ...labtest.Component) *stage {
	t.Helper()
	labtest.In(t, labtest.TierAll)
	w := testkit.NewWorldOn(t, labtest.Shared(t, needs...))
	return &stage{World: w, kubeconfig: w.Cluster.Kubeconfig()}
}

// run starts the controller with a log that says all that it decides.
func (s *stage) run(t testing.TB, flags ...string) {
	t.Helper()
	s.runAs(t, s.Cluster.Kubeconfig(), flags...)
	s.controller.AwaitReady(t, true)
}

// runAs does the same with the permissions of a kubeconfig, and does not wait.
func (s *stage) runAs(t testing.TB, kubeconfig string, flags ...string) {
	t.Helper()
	s.controller = inprocess.StartControllerAs(t, s.World, kubeconfig, append([]string{"--quiet", testkit.Quiet, "--log-level", "debug", "--log-format", "json"}, flags...)...)
}

// make creates the objects of a YAML text.
func (s *stage) make(t testing.TB, manifest string) {
	t.Helper()
	s.Make(t, manifest)
}

// blank is an empty object of the kind and name: "deployment/web".
func blank(t testing.TB, ref string) *unstructured.Unstructured {
	t.Helper()
	return testkit.Blank(t, ref)
}

// change changes an object by a JSON merge patch, written as YAML.
func (s *stage) change(t testing.TB, ref, patch string) {
	t.Helper()
	body, err := sigsyaml.YAMLToJSON([]byte(patch))
	if err != nil {
		t.Fatalf("read patch %s: %v", patch, err)
	}
	o := blank(t, ref)
	s.Patch(t, o, o.GetName(), string(body))
}

// touch gives a ConfigMap another content.
func (s *stage) touch(t testing.TB, configMap string) {
	t.Helper()
	s.SetConfig(t, configMap, "key", "two")
}

func (s *stage) annotate(t testing.TB, ref, key, value string) {
	t.Helper()
	s.change(t, ref, fmt.Sprintf("{metadata: {annotations: {%s: %q}}}", key, value))
}

// delete deletes an object and waits until it is gone.
func (s *stage) delete(t testing.TB, ref string) {
	t.Helper()
	o := blank(t, ref)
	o.SetNamespace(s.Namespace)
	if err := s.Client.Delete(t.Context(), o); err != nil {
		t.Fatalf("delete %s: %v", ref, err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopy())
		return client.IgnoreNotFound(err) == nil && err != nil, ref + " is still there"
	})
}

// awaitObserved waits until the cluster's own controller has acted on the object.
func (s *stage) awaitObserved(t testing.TB, ref string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		o := blank(t, ref)
		s.Get(t, o.GetName(), o)
		seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return seen == o.GetGeneration(), fmt.Sprintf("generation %d of %s was not looked at, only %d", o.GetGeneration(), ref, seen)
	})
}

// undo is "kubectl rollout undo" to the revision that shows the versions.
func (s *stage) undo(t testing.TB, name, shown string) {
	t.Helper()
	s.Undo(t, name, shown)
}

// onRecord is what is on record of a workload.
func (s *stage) onRecord(t testing.TB, ref string) string {
	t.Helper()
	o := blank(t, ref)
	return s.RecordOf(t, o.GroupVersionKind().GroupKind(), o.GetName())
}

// awaitOnRecord waits until the record of a workload has the texts.
func (s *stage) awaitOnRecord(t testing.TB, ref string, texts ...string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		entry := s.onRecord(t, ref)
		for _, text := range texts {
			if !strings.Contains(entry, text) {
				return false, fmt.Sprintf("the record of %s is %q, want %q in it", ref, entry, text)
			}
		}
		return entry != "", ref + " is not on record"
	})
}

// shards are the ConfigMaps of the record.
func (s *stage) shards(t testing.TB) []corev1.ConfigMap {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.Own), client.HasLabels{settings.StateLabel}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// decided is a line of the controller's log.
type decided struct{ Msg, Workload, Verb, Reason, Message string }

// log are the decisions on a workload that the controller has logged, oldest first.
func (s *stage) log(t testing.TB, ref string) []decided {
	t.Helper()
	o := blank(t, ref)
	about := fmt.Sprintf("%s/%s/%s", o.GetKind(), s.Namespace, o.GetName())
	var all []decided
	for text := range strings.Lines(s.controller.Stderr()) {
		var line decided
		// What another program wrote, or has not written to its end, is no decision.
		if json.Unmarshal([]byte(text), &line) == nil && line.Workload == about && line.Msg == "decided" {
			all = append(all, line)
		}
	}
	return all
}

// awaitDecided waits until the log has a decision of the reason, and returns the newest.
func (s *stage) awaitDecided(t testing.TB, ref, reason string) decided {
	t.Helper()
	var found decided
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		all := s.log(t, ref)
		for _, line := range all {
			if line.Reason == reason {
				found = line
			}
		}
		return found.Reason != "", fmt.Sprintf("%s was not decided on by %s, but %+v", ref, reason, all)
	})
	return found
}
