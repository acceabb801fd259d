package kube_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
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
		"Sources":    {"thousands of sources", func(d *appsv1.Deployment) { each(4000, func(i int) { addEnv(d, fmt.Sprint("app-", i), "key") }) }, true},
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
