package revisions_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const crewRevision = "crews.example.org/revision"

// crews is a made-up kind: one row, and nothing else. Its controller is this
// test. It makes ReplicaSets and notes on the crew which of them is the current one.
func crews() kube.Kind {
	return kube.NewKind(kube.Row{
		GroupVersionKind: schema.GroupVersionKind{Group: "crews.example.org", Version: "v1", Kind: "Crew"},
		Template:         "spec.members.pod", ShortNames: []string{"cw"},
		Revisions: kube.ReplicaSets(), RevisionNumbers: []string{crewRevision},
		CurrentOf: func(w client.Object, all []client.Object) client.Object {
			for _, o := range all {
				if o.GetAnnotations()[crewRevision] == w.GetAnnotations()[crewRevision] {
					return o
				}
			}
			return nil
		},
	})
}

// TestAMadeUpKind: a kind is followed, patched, looked up and attached to with nothing
// but its row.
func TestAMadeUpKind(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	kinds := append(kube.Kinds(), crews())
	kind, found := kube.FindKind(kinds, "cw")
	if !found || kind.Name() != "crew.crews.example.org" {
		t.Fatalf("cw is found: %t", found)
	}
	cache := cluster.NewCache(testkit.NewClient(t, c.kubeconfig), cluster.CacheOptions{
		Kinds: kinds, Sources: []input.Kind{input.KindConfigMap}, Namespaces: []string{c.namespace}, IgnoreNamespaces: true,
		Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {},
	})
	watch := ownership.New(cache, ownership.Options{Now: time.Now, Report: func(mirror.Sync) {}})
	testkit.RunInBackground(t, func(ctx context.Context) { cache.Run(ctx, kube.Hashers{}) })
	key := kube.Key{GroupKind: kind.GroupKind(), Namespace: c.namespace, Name: "web"}
	cm := input.ConfigMap("cm")

	cached := func() *kube.Workload {
		var w *kube.Workload
		labtest.Eventually(t, patience, func() (bool, string) {
			var ok bool
			w, ok = cache.Workload(key)
			return ok && w.ResourceVersion == c.read().GetResourceVersion(), fmt.Sprintf("the cache has %+v", w)
		})
		return w
	}
	w := cached()
	if w.Problem != "" || w.Replicas != 2 || len(w.Refs) != 1 || w.Refs[0].Source != cm || !slices.Contains(cache.Users(c.namespace, cm), key) {
		t.Errorf("the cache knows %+v, used by %v", w, cache.Users(c.namespace, cm))
	}

	order := input.Order{All: []input.Finding{{ID: cm, Versions: input.Versions{Shows: input.Tracked("1111111111")}, Live: true}}}
	for _, form := range []patcher.Form{patcher.AsAnnotation, patcher.AsVariable} {
		if _, err := patcher.NewPatcher(c.admin, form).RollOut(t.Context(), cached(), order); err != nil {
			t.Fatal(err)
		}
		if got := cached().Shown.String(); got != "configmap/cm~1111111111" {
			t.Errorf("the template shows %q", got)
		}
	}

	c.act("7")
	past, err := lineage.Revisions(t.Context(), c.admin, cached())
	if history := past.Revisions; err != nil || len(history) != 1 || history[0].Number != 7 || !history[0].Shown.Show(cm, input.Tracked("1111111111")) {
		t.Errorf("past %+v, error %v", past, err)
	}
	if _, err := c.attach(c.request(kind, cm)); err != nil || c.owners(cm) != "ReplicaSet/web-7" {
		t.Errorf("attached to %q, error %v", c.owners(cm), err)
	}

	// The continuous mode finds the revision too.
	change := c.get(cm).DeepCopyObject().(client.Object)
	change.SetLabels(map[string]string{settings.Revisioned: "true"})
	if err := c.admin.Patch(t.Context(), change, client.MergeFrom(c.get(cm))); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		users := watch.Users(ownership.ObjectKey{Namespace: c.namespace, Source: cm})
		return len(users) == 1 && users[0].String() == "ReplicaSet/web-7", fmt.Sprint("users ", users)
	})
}

// crew is the crew "web", and a cluster that serves its kind.
type crew struct {
	*lab
	kubeconfig string
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	c := &crew{lab: newLab(t), kubeconfig: labtest.Shared(t).Kubeconfig()}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err == nil {
		c.client, err = access.NewDirectClient(config, []kube.Kind{crews()})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.serve()
	c.source(input.ConfigMap("cm"))
	pods := template(input.ConfigMap("cm"))
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pods)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(2), "members": map[string]any{"pod": fields},
		"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
	}}}
	o.SetGroupVersionKind(crews().GroupVersionKind)
	o.SetName("web")
	c.create(o)
	return c
}

// serve has the API server serve the kind.
func (c *crew) serve() {
	c.t.Helper()
	kind := crews()
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": kind.Group, "scope": "Namespaced",
		"names": map[string]any{"kind": kind.Kind, "plural": strings.ToLower(kind.Kind) + "s"},
		"versions": []any{map[string]any{
			"name": kind.Version, "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": open, "status": open}}},
		}},
	}}}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName("crews." + kind.Group)
	if err := c.admin.Create(c.t.Context(), definition); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = c.admin.Delete(context.WithoutCancel(c.t.Context()), definition) })
	labtest.Eventually(c.t, time.Minute, func() (bool, string) {
		err := c.admin.List(c.t.Context(), kind.NewList(), client.InNamespace(c.namespace))
		return err == nil, fmt.Sprint(err)
	})
}

func (c *crew) read() client.Object {
	c.t.Helper()
	o := crews().NewObject()
	if err := c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "web"}, o); err != nil {
		c.t.Fatal(err)
	}
	return o
}

// act does what the kind's controller would: it makes a revision of the template and
// notes its number.
func (c *crew) act(number string) {
	c.t.Helper()
	o := c.read()
	pods, err := crews().PodTemplate(o)
	if err != nil {
		c.t.Fatal(err)
	}
	none := int32(0)
	c.create(&appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-" + number, Labels: pods.Labels, Annotations: map[string]string{crewRevision: number},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, crews().GroupVersionKind)},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &none, Selector: selector(), Template: corev1.PodTemplateSpec{ObjectMeta: pods.ObjectMeta, Spec: pods.Spec}},
	})
	before := o.DeepCopyObject().(client.Object)
	o.SetAnnotations(map[string]string{crewRevision: number})
	if err := c.admin.Patch(c.t.Context(), o, client.MergeFrom(before)); err != nil {
		c.t.Fatal(err)
	}
}
