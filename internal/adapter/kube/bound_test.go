package kube_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestLargeWorkloadsAreNotKept: of a workload whose template or selector is larger than
// Lockstep keeps, only its name and its settings are kept, and a text that says why.
func TestLargeWorkloadsAreNotKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 250)
	cases := map[string]struct {
		reason string
		grow   func(*appsv1.Deployment)
		large  bool
	}{
		"Usual": {"a template with a few sources", func(d *appsv1.Deployment) {
			for i := range 50 {
				addEnv(d, fmt.Sprint("app-", i), "key")
			}
		}, false},
		"Sources":    {"only the first of thousands of sources are kept", func(d *appsv1.Deployment) { each(4000, func(i int) { addEnv(d, fmt.Sprint("app-", i), "key") }) }, false},
		"Keys":       {"thousands of keys of one source", func(d *appsv1.Deployment) { each(4000, func(i int) { addEnv(d, "app", fmt.Sprint("key-", i)) }) }, true},
		"Containers": {"thousands of images", func(d *appsv1.Deployment) { each(3000, func(i int) { addContainer(d, fmt.Sprint("c-", i), long) }) }, true},
		"Selector": {"a selector with long lists", func(d *appsv1.Deployment) {
			each(400, func(i int) {
				d.Spec.Selector.MatchExpressions = append(d.Spec.Selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: fmt.Sprint("k-", i), Operator: metav1.LabelSelectorOpNotIn, Values: []string{long}})
			})
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{settings.Reload: "auto"}}}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
			tc.grow(d)
			w, err := kube.SlimWorkload(kube.Deployment(), d, settings.Native{})
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Excess != ""; got != tc.large {
				t.Errorf("%s: Excess is %q", tc.reason, w.Excess)
			}
			if kept := len(w.Refs) + len(w.Images) + len(w.Containers); (kept == 0) != tc.large || (w.Selector == nil) != tc.large || w.Annotations[settings.Reload] != "auto" {
				t.Errorf("%s: %d sources, images and containers are kept, and the selector %v", tc.reason, kept, w.Selector)
			}
		})
	}
}

// TestManySourcesAreNotKept: of a template that names thousands of sources, those that the
// annotation lists are kept, and just enough others to notice.
func TestManySourcesAreNotKept(t *testing.T) {
	t.Parallel()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{settings.Reload: "configmap/z, configmap/app-39*"}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	addEnv(d, "z", "key")
	each(4000, func(i int) { addEnv(d, fmt.Sprint("app-", i), "key") })
	kept := func(kind kube.Kind, o any) *kube.Workload {
		w, err := kube.SlimWorkload(kind, o, settings.Native{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := kept(kube.Deployment(), d)
	sources, listed := make([]input.ID, len(w.Refs)), 0
	for i, ref := range w.Refs {
		sources[i] = ref.Source
		if name := ref.Source.Name; name == "z" || strings.HasPrefix(name, "app-39") {
			listed++
		}
		if diff := cmp.Diff(fingerprint.SomeKeys("key").ID(), ref.Keys.ID()); diff != "" {
			t.Errorf("the keys of %s (-want +got):\n%s", ref.Source, diff)
		}
	}
	if len(w.Refs) != input.MaxInputs+1 || listed != 1+1+10+100 || input.Excess(sources) == "" || w.Excess != "" {
		t.Errorf("%d sources are kept and %d of the 112 listed ones, the workload is too large: %q", len(w.Refs), listed, w.Excess)
	}
	j := &batchv1.CronJob{ObjectMeta: d.ObjectMeta}
	j.Spec.JobTemplate.Spec.Template = d.Spec.Template
	if w := kept(kube.CronJob(), j); len(w.Keeps) != input.MaxInputs+1 {
		t.Errorf("%d sources of a CronJob's revision are kept", len(w.Keeps))
	}
}

// TestManyPullSecretsAreNotKept: a workload can name one pull secret thousands of times.
func TestManyPullSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for i := range 3000 {
		d.Spec.Template.Spec.ImagePullSecrets = append(d.Spec.Template.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: fmt.Sprint("pull-", i%3)})
	}
	w, err := kube.SlimWorkload(kube.Deployment(), d, settings.Native{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pull-0", "pull-1", "pull-2"}, w.Pull.Secrets); diff != "" || w.Excess != "" {
		t.Errorf("pull secrets (-want +got):\n%s, too large: %q", diff, w.Excess)
	}
}

func each(n int, do func(int)) {
	for i := range n {
		do(i)
	}
}

func addEnv(d *appsv1.Deployment, source, key string) {
	c := &d.Spec.Template.Spec.Containers[0]
	c.Env = append(c.Env, corev1.EnvVar{Name: "V", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: source}, Key: key}}})
}

func addContainer(d *appsv1.Deployment, name, image string) {
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: name, Image: image})
}

// TestTextsAreCut: a tenant can write a megabyte into fields whose length the API server doesn't
// check. Of each, a workload keeps as much as Kubernetes itself writes there.
func TestTextsAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<19)
	owned := metav1.ObjectMeta{Name: "web", OwnerReferences: []metav1.OwnerReference{{APIVersion: long, Kind: long, Name: long, UID: types.UID(long), Controller: new(true)}}}
	cases := map[string]struct {
		kind   kube.Kind
		object client.Object
	}{
		"Owner":    {kube.Deployment(), &appsv1.Deployment{ObjectMeta: owned}},
		"MovedBy":  {kube.Deployment(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{settings.RolledOutBy: long}}}},
		"Revision": {kube.StatefulSet(), &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{UpdateRevision: long}}},
		"Account":  {kube.Deployment(), &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: long}}}}},
		"Rollout": {kube.Rollout(), &unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": long}},
			"status": map[string]any{"phase": long, "currentPodHash": long, "stableRS": long, "abort": true},
		}}},
		"Lender": {kube.Rollout(), &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": long, "name": "web"}},
		}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := kube.SlimWorkload(tc.kind, tc.object, settings.Native{})
			if err != nil {
				t.Fatal(err)
			}
			w.Kind, w.Target.Kind = kube.Kind{}, kube.Kind{} // shared by all
			if got := texts(reflect.ValueOf(w)); got > 4<<10 {
				t.Errorf("%d KiB of texts are kept", got>>10)
			}
			if !utf8.ValidString(w.Owner) {
				t.Error("the owner is cut inside a character")
			}
		})
	}
}

// texts is how many bytes the strings in a value have.
func texts(v reflect.Value) int {
	size := 0
	switch v.Kind() {
	case reflect.String:
		size = v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			size = texts(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			size += texts(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			size += texts(v.Index(i))
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			size += texts(key) + texts(value)
		}
	default:
	}
	return size
}
