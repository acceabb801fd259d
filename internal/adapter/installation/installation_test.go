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
	if want := []string{"--own-namespace=tools", "--quiet=5s", "--kind=$(SECRET)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWhoseItIs: other programs have a command "controller" too.
func TestWhoseItIs(t *testing.T) {
	t.Parallel()
	u := installation.Understand(func(arguments []string, _ func(string) (string, bool)) (installation.Configured, bool) {
		return installation.Configured{}, slices.Equal(arguments, []string{"controller"})
	})
	for name, tc := range map[string]struct {
		reason string
		labels map[string]string
		from   corev1.Container
		want   bool
	}{
		"Command":       {"whatever the image is called", nil, corev1.Container{Image: "registry.example/ls", Command: []string{"/lockstep", "controller"}}, true},
		"Image":         {"the image has the entry point", nil, corev1.Container{Image: "registry.example/team/lockstep:v1", Args: []string{"controller"}}, true},
		"Label":         {"the chart labels its pods", map[string]string{"app.kubernetes.io/name": "lockstep"}, corev1.Container{Image: "registry.example/ls", Args: []string{"controller"}}, true},
		"SealedSecrets": {"its command is so too", nil, corev1.Container{Image: "docker.io/bitnami/sealed-secrets-controller", Command: []string{"controller"}}, false},
		"Arguments":     {"of another image", nil, corev1.Container{Image: "registry.example/other", Args: []string{"controller"}}, false},
		"Other":         {"another command of ours", nil, corev1.Container{Command: []string{"/lockstep", "status"}}, false},
	} {
		d := &appsv1.Deployment{}
		d.Spec.Template.Labels, d.Spec.Template.Spec.Containers = tc.labels, []corev1.Container{tc.from}
		if _, got := u.Of(d); got != tc.want {
			t.Errorf("%s, %s: %t", name, tc.reason, got)
		}
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
