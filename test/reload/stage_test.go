package reload_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// stage is a world with a witness, in which objects are named as people name
// them: "deployment/web".
type stage struct {
	*testkit.World
	witness *testkit.Witness
	counter *counter
	// pass returns when everything that was done before has been decided.
	pass func(t testing.TB)
}

// newStage makes a stage with the objects of a YAML text on it, and waits until the
// cluster's own controllers have looked at its workloads: a ReplicaSet that they make after
// a test has changed a source would have loaded that change.
func newStage(t testing.TB, manifest string, needs ...labtest.Component) *stage {
	t.Helper()
	labtest.In(t, labtest.TierAll) // "make test" has a story of each capability elsewhere
	w := testkit.NewWorldOn(t, labtest.Shared(t, needs...))
	s := &stage{World: w, witness: w.NewWitness(t), counter: newCounter(t, w)}
	s.pass = s.witness.Pass
	s.make(t, manifest)
	for _, kind := range []string{"deployment", "statefulset", "daemonset"} {
		for _, name := range s.names(t, kind) {
			s.awaitObserved(t, kind+"/"+name)
		}
	}
	return s
}

// names are the names of the objects of a kind.
func (s *stage) names(t testing.TB, kind string) []string {
	t.Helper()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(blank(t, kind+"/any").GroupVersionKind())
	if err := s.Client.List(t.Context(), all, client.InNamespace(s.Namespace)); err != nil {
		t.Fatalf("list the kind %s: %v", kind, err)
	}
	var names []string
	for _, o := range all.Items {
		names = append(names, o.GetName())
	}
	return names
}

// run starts the controller in the test process, with a short quiet window, and waits until
// it knows the witness.
func (s *stage) run(t testing.TB, flags ...string) *testkit.Controller {
	t.Helper()
	c := inprocess.StartReady(t, s.World, append([]string{"--quiet", testkit.Quiet}, flags...)...)
	s.witness.AwaitKnown(t)
	return c
}

// runProcess does the same with the built program, which can be killed.
func (s *stage) runProcess(t testing.TB, flags ...string) *testkit.Controller {
	t.Helper()
	c := s.StartReady(t, append([]string{"--quiet", testkit.Quiet}, flags...)...)
	s.witness.AwaitKnown(t)
	return c
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

// read reads an object.
func (s *stage) read(t testing.TB, ref string) *unstructured.Unstructured {
	t.Helper()
	o := blank(t, ref)
	s.Get(t, o.GetName(), o)
	return o
}

// change changes an object by a JSON merge patch, written as YAML.
func (s *stage) change(t testing.TB, ref, patch string) {
	t.Helper()
	var fields map[string]any
	if err := yaml.NewYAMLOrJSONDecoder(strings.NewReader(patch), len(patch)).Decode(&fields); err != nil {
		t.Fatalf("read patch %s: %v", patch, err)
	}
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatalf("write patch %s: %v", patch, err)
	}
	o := blank(t, ref)
	s.Patch(t, o, o.GetName(), string(body))
}

// annotate sets an annotation of any object; no value removes it.
func (s *stage) annotate(t testing.TB, ref, key string, value ...string) {
	t.Helper()
	text := "null"
	if len(value) > 0 {
		text = fmt.Sprintf("%q", value[0])
	}
	s.change(t, ref, fmt.Sprintf("{metadata: {annotations: {%s: %s}}}", key, text))
}

// delete deletes an object and waits until it is gone.
func (s *stage) delete(t testing.TB, ref string) {
	t.Helper()
	o := blank(t, ref)
	o.SetNamespace(s.Namespace)
	if err := s.Client.Delete(t.Context(), o, client.GracePeriodSeconds(0)); err != nil {
		t.Fatalf("delete %s: %v", ref, err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopy())
		return client.IgnoreNotFound(err) == nil && err != nil, ref + " is still there"
	})
}

// full lets no further pod start in the namespace, as if their image couldn't be
// pulled.
func (s *stage) full(t testing.TB, is bool) {
	t.Helper()
	if !is {
		s.delete(t, "quota/full")
		return
	}
	s.make(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: full}, spec: {hard: {pods: 0}}}")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		status, _ := s.read(t, "quota/full").Object["status"].(map[string]any)
		return len(status) > 0, fmt.Sprintf("Kubernetes doesn't enforce the quota yet: status %v", status)
	})
}

// rollouts is how often the pod template was changed since the object was made.
func (s *stage) rollouts(t testing.TB, ref string) int {
	t.Helper()
	o := s.read(t, ref)
	if o.GetKind() == "Deployment" {
		return s.counter.rollouts(t, o)
	}
	return int(o.GetGeneration()) - 1
}

// awaitRollouts waits until the object was rolled out that often.
func (s *stage) awaitRollouts(t testing.TB, ref string, want int) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := s.rollouts(t, ref)
		if got > want {
			t.Fatalf("%s was rolled out %d times, want %d; it shows %q", ref, got, want, s.shown(t, ref))
		}
		return got == want, fmt.Sprintf("%s was rolled out %d times, want %d", ref, got, want)
	})
}

// awaitFurtherRollouts waits until the object was rolled out at least that often, for
// tests in which there is no last rollout.
func (s *stage) awaitFurtherRollouts(t testing.TB, ref string, least int) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := s.rollouts(t, ref)
		return got >= least, fmt.Sprintf("%s was rolled out %d times, want %d or more", ref, got, least)
	})
}

// checkRollouts waits until the controller has come past everything that was done
// before, and fails when the object was not rolled out exactly that often.
func (s *stage) checkRollouts(t testing.TB, why string, want int, refs ...string) {
	t.Helper()
	s.pass(t)
	for _, ref := range refs {
		if got := s.rollouts(t, ref); got != want {
			t.Errorf("%s: %s was rolled out %d times, want %d; it shows %q", why, ref, got, want, s.shown(t, ref))
		}
	}
}

// awaitObserved waits until the cluster's own controller has written what it makes of
// the object.
func (s *stage) awaitObserved(t testing.TB, ref string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		o := s.read(t, ref)
		seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return seen == o.GetGeneration(), fmt.Sprintf("generation %d of %s was not looked at, only %d", o.GetGeneration(), ref, seen)
	})
}

// shown is what the pod template shows of the versions it was given.
func (s *stage) shown(t testing.TB, ref string) string {
	t.Helper()
	text, _, _ := unstructured.NestedString(s.read(t, ref).Object, "spec", "template", "metadata", "annotations", settings.Inputs)
	return text
}

// remembered is what is on record of a workload, by storage key:
// "Deployment.apps_NAMESPACE_web" without the namespace.
func (s *stage) remembered(t testing.TB, groupKind, name string) string {
	t.Helper()
	return s.stored(t, groupKind+"_"+s.Namespace+"_"+name)
}

func (s *stage) stored(t testing.TB, key string) string {
	t.Helper()
	for _, shard := range s.shards(t) {
		if text, ok := shard.Data[key]; ok {
			return text
		}
	}
	return ""
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

// awaitKnown waits until each workload is on record with all of the sources.
func (s *stage) awaitKnown(t testing.TB, groupKind, name string, sources ...string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		text := s.remembered(t, groupKind, name)
		for _, source := range sources {
			if !strings.Contains(text, source) {
				return false, fmt.Sprintf("the record of %s %s is %q, want %q in it", groupKind, name, text, source)
			}
		}
		return text != "", fmt.Sprintf("%s %s is not on record", groupKind, name)
	})
}

// manifest of a workload with the given annotations and pod specification, both
// in the flow style of YAML. It asks for no pods unless the text says otherwise.
func workload(kind, name, annotations, pod string) string {
	more := map[string]string{
		"Deployment":  "replicas: 0, ",
		"StatefulSet": "replicas: 0, serviceName: none, ",
		"DaemonSet":   "",
	}[kind]
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: %s
metadata: {name: %s, annotations: {%s}}
spec: {%sselector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, spec: {%s}}}
`, kind, name, annotations, more, name, name, pod)
}

// deployment is a workload of the kind that most tests are about.
func deployment(name, annotations, pod string) string {
	return workload("Deployment", name, annotations, pod)
}

const auto = settings.Reload + ": auto"

// uses is a pod specification that reads sources into its environment.
func uses(sources ...string) string {
	var from bytes.Buffer
	for _, source := range sources {
		kind, name, _ := strings.Cut(source, "/")
		field := map[string]string{"configmap": "configMapRef", "secret": "secretRef"}[kind]
		fmt.Fprintf(&from, "{%s: {name: %s}}, ", field, name)
	}
	return fmt.Sprintf("containers: [{name: app, image: app, envFrom: [%s]}]", from.String())
}

// configMap is a ConfigMap with the given data in flow style.
func configMap(name, data string) string {
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {%s}}\n", name, data)
}

// secret is a Secret with the given texts in flow style.
func secret(name, data string) string {
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: Secret, metadata: {name: %s}, stringData: {%s}}\n", name, data)
}

const (
	web    = "deployment/web"
	deploy = "Deployment.apps"
)
