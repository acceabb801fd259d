package testkit

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// Make creates the objects of a YAML manifest.
func (w *World) Make(t testing.TB, manifest string) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("read manifest: %v", err)
		}
		if o.Object != nil {
			w.AwaitServed(t, o)
			w.Create(t, o)
		}
	}
}

// AwaitServed waits until the API server serves the object's kind, which takes a moment
// after a custom kind was installed.
func (w *World) AwaitServed(t testing.TB, o *unstructured.Unstructured) {
	t.Helper()
	labtest.Eventually(t, Patience, func() (bool, string) {
		_, err := w.Client.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		return !meta.IsNoMatchError(err), fmt.Sprint(err)
	})
}

// kinds are the kinds that tests name by a short form.
func kinds() map[string]schema.GroupVersionKind {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	core := schema.GroupVersion{Version: "v1"}
	return map[string]schema.GroupVersionKind{
		"deployment":            apps.WithKind("Deployment"),
		"statefulset":           apps.WithKind("StatefulSet"),
		"daemonset":             apps.WithKind("DaemonSet"),
		"cronjob":               {Group: "batch", Version: "v1", Kind: "CronJob"},
		"rollout":               {Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
		"configmap":             core.WithKind("ConfigMap"),
		"secret":                core.WithKind("Secret"),
		"replicationcontroller": core.WithKind("ReplicationController"),

		"quota":  core.WithKind("ResourceQuota"),
		"budget": {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	}
}

// Blank is an empty object of the kind and name: "deployment/web".
func Blank(t testing.TB, ref string) *unstructured.Unstructured {
	t.Helper()
	kind, name, _ := strings.Cut(ref, "/")
	gvk, ok := kinds()[kind]
	if !ok {
		t.Fatalf("unknown kind in %q", ref)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetName(name)
	return o
}

// Undo is "kubectl rollout undo" to the revision that shows the versions.
func (w *World) Undo(t testing.TB, name, shown string) {
	t.Helper()
	sets := &appsv1.ReplicaSetList{}
	labtest.Eventually(t, Patience, func() (bool, string) {
		if err := w.Client.List(t.Context(), sets, client.InNamespace(w.Namespace), client.MatchingLabels{"app": name}); err != nil {
			t.Fatal(err)
		}
		for _, set := range sets.Items {
			if set.Spec.Template.Annotations[settings.Inputs] != shown {
				continue
			}
			d := w.Deployment(t, name)
			d.Spec.Template = set.Spec.Template
			delete(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
			if err := w.Client.Update(t.Context(), d); err != nil {
				return false, err.Error()
			}
			return true, ""
		}
		return false, fmt.Sprintf("no revision of %s shows %q", name, shown)
	})
}
