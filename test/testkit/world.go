// Package testkit is the environment of the end-to-end tests: a namespace with an
// application in it, the built controller that follows it, and a connection between the two
// that can be cut.
//
// It never links the product, because tests inside the product's packages use it too.
// Package inprocess runs the controller in the test process instead.
package testkit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// Patience bounds every wait for an expected event. It is long because tests share two cores
// with each other; a passing test never waits that long.
const Patience = 5 * time.Minute

// World is a namespace for an application and one for its controller.
type World struct {
	Cluster *labtest.Cluster
	Client  client.Client
	// Namespace is the application's namespace.
	Namespace string
	// Own is the namespace of the controller's objects.
	Own string
	// Clock is how far the controller's clock is off.
	Clock time.Duration

	witness *Witness
}

// NewWorld creates a world on the shared control plane.
func NewWorld(t testing.TB) *World {
	t.Helper()
	return NewWorldOn(t, labtest.Shared(t))
}

// NewWorldOn creates a world on a control plane.
func NewWorldOn(t testing.TB, cluster *labtest.Cluster) *World {
	t.Helper()
	return &World{
		Cluster: cluster, Client: NewClient(t, cluster.Kubeconfig()),
		Namespace: labtest.Namespace(t, cluster), Own: labtest.Namespace(t, cluster),
	}
}

// NewClient returns a client with a kubeconfig's permissions.
func NewClient(t testing.TB, kubeconfig string) client.WithWatch {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Create creates objects in the application's namespace. It waits until a Deployment has its
// ReplicaSet: if Kubernetes created it only after a test has changed a source, its pods
// would load that change, and the change would not lead to a second revision.
func (w *World) Create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(w.Namespace)
		}
		if err := w.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
		if d, ok := o.(*appsv1.Deployment); ok && d.Namespace == w.Namespace {
			w.Revisions(t, d.Name)
		}
	}
}

// Get reads an object of the application's namespace.
func (w *World) Get(t testing.TB, name string, into client.Object) {
	t.Helper()
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, into); err != nil {
		t.Fatalf("get %T %s: %v", into, name, err)
	}
}

// Patch changes an object of the application's namespace by a JSON merge patch.
func (w *World) Patch(t testing.TB, object client.Object, name, patch string) {
	t.Helper()
	object.SetNamespace(w.Namespace)
	object.SetName(name)
	if err := w.Client.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatalf("patch %T %s: %v", object, name, err)
	}
}

// SetConfig changes a key of a ConfigMap.
func (w *World) SetConfig(t testing.TB, name, key, value string) {
	t.Helper()
	w.Patch(t, &corev1.ConfigMap{}, name, fmt.Sprintf(`{"data":{%q:%q}}`, key, value))
}

// SetSecret changes a key of a Secret.
func (w *World) SetSecret(t testing.TB, name, key, value string) {
	t.Helper()
	w.Patch(t, &corev1.Secret{}, name, fmt.Sprintf(`{"stringData":{%q:%q}}`, key, value))
}

// Annotate sets an annotation of a Deployment; no value removes it.
func (w *World) Annotate(t testing.TB, deployment, key string, value ...string) {
	t.Helper()
	text := "null"
	if len(value) > 0 {
		text = fmt.Sprintf("%q", value[0])
	}
	w.Patch(t, &appsv1.Deployment{}, deployment, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, text))
}

// Deployment reads a Deployment.
func (w *World) Deployment(t testing.TB, name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	w.Get(t, name, d)
	return d
}

// Shown is the annotation in which a Deployment's template shows its versions.
func (w *World) Shown(t testing.TB, deployment string) string {
	t.Helper()
	return w.Deployment(t, deployment).Spec.Template.Annotations[settings.Inputs]
}

// Revisions counts the ReplicaSets of a Deployment. It waits until the newest template has
// one, so the count includes all rollouts so far.
func (w *World) Revisions(t testing.TB, deployment string) int {
	t.Helper()
	count := 0
	labtest.Eventually(t, Patience, func() (bool, string) {
		d := w.Deployment(t, deployment)
		sets := &appsv1.ReplicaSetList{}
		if err := w.Client.List(t.Context(), sets, client.InNamespace(w.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
			t.Fatal(err)
		}
		count = len(sets.Items)
		seen := d.Status.ObservedGeneration
		return seen == d.Generation, fmt.Sprintf("generation %d of %s is not rolled out, only %d", d.Generation, deployment, seen)
	})
	return count
}

// AwaitRollout waits until a Deployment shows other versions than before, and
// returns them.
func (w *World) AwaitRollout(t testing.TB, deployment, before string) string {
	t.Helper()
	shown := before
	labtest.Eventually(t, Patience, func() (bool, string) {
		shown = w.Shown(t, deployment)
		return shown != before, fmt.Sprintf("%s still shows %q", deployment, before)
	})
	return shown
}

// Events are the notes of the events about a Deployment, each after its type and
// reason: "Normal Reloaded rolled out configmap/app …".
func (w *World) Events(t testing.TB, deployment string) []string {
	t.Helper()
	list := &eventsv1.EventList{}
	if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, e := range list.Items {
		if e.Regarding.Name == deployment && strings.HasPrefix(e.ReportingController, "lockstep") {
			notes = append(notes, strings.Join([]string{e.Type, e.Reason, e.Note}, " "))
		}
	}
	return notes
}

// AwaitEvent waits for an event about a Deployment that contains every text.
func (w *World) AwaitEvent(t testing.TB, deployment string, texts ...string) string {
	t.Helper()
	var found string
	labtest.Eventually(t, Patience, func() (bool, string) {
		events := w.Events(t, deployment)
		for _, note := range events {
			if containsAll(note, texts) {
				found = note
				return true, ""
			}
		}
		return false, fmt.Sprintf("no event with %q among %q", texts, events)
	})
	return found
}

// AwaitRecord waits until the record of a Deployment contains every text.
func (w *World) AwaitRecord(t testing.TB, deployment string, texts ...string) {
	t.Helper()
	labtest.Eventually(t, Patience, func() (bool, string) {
		entry := w.Record(t, deployment)
		return entry != "" && containsAll(entry, texts), fmt.Sprintf("the record of %s is %q, want %q in it", deployment, entry, texts)
	})
}

// Record is the record of a Deployment, empty when there is none.
func (w *World) Record(t testing.TB, deployment string) string {
	t.Helper()
	return w.RecordOf(t, schema.GroupKind{Group: "apps", Kind: "Deployment"}, deployment)
}

// RecordOf is the record of a workload of any kind.
func (w *World) RecordOf(t testing.TB, kind schema.GroupKind, name string) string {
	t.Helper()
	shards := &corev1.ConfigMapList{}
	if err := w.Client.List(t.Context(), shards, client.InNamespace(w.Own), client.MatchingLabels{settings.StateLabel: "true"}); err != nil {
		t.Fatal(err)
	}
	for _, shard := range shards.Items {
		if entry, ok := shard.Data[kind.Kind+"."+kind.Group+"_"+w.Namespace+"_"+name]; ok {
			return entry
		}
	}
	return ""
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// ConfigMap is one with a single key.
func ConfigMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: value}}
}

// Secret is one with a single key.
func Secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: value}}
}
