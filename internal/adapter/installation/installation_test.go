package installation_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
)

// TestVariables: Kubernetes puts variables into arguments.
func TestVariables(t *testing.T) {
	t.Parallel()
	var got []string
	u := installation.Understand(func(arguments []string, _ func(string) (string, bool)) (installation.Configured, bool) {
		got = arguments
		return installation.Configured{}, true
	})
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tools"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Command: []string{"lockstep"}, Args: []string{"--own-namespace=$(OWN)", "--quiet=$(QUIET)", "--kind=$(SECRET)"},
		Env: []corev1.EnvVar{
			{Name: "OWN", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
			{Name: "QUIET", Value: "5s"},
			{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "a"}}},
		},
	}}
	u.Of(d)
	if want := []string{"lockstep", "--own-namespace=tools", "--quiet=5s", "--kind=$(SECRET)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWatches(t *testing.T) {
	t.Parallel()
	selector, err := labels.Parse("team=shop")
	if err != nil {
		t.Fatal(err)
	}
	named, selected := installation.Configured{Watched: []string{"shop"}}, installation.Configured{Selector: selector}
	for name, tc := range map[string]struct {
		configured installation.Configured
		namespace  string
		labels     labels.Set
		want       bool
	}{
		"All":        {installation.Configured{}, "shop", nil, true},
		"Named":      {named, "shop", nil, true},
		"NotNamed":   {named, "other", nil, false},
		"Labelled":   {selected, "other", labels.Set{"team": "shop"}, true},
		"Unlabelled": {selected, "shop", nil, false},
	} {
		if got := tc.configured.Watches(tc.namespace, tc.labels); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
