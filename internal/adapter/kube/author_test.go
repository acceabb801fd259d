package kube_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// TestAuthorsBetween: the path elements of managed fields lead to the fields of both templates.
func TestAuthorsBetween(t *testing.T) {
	t.Parallel()
	before := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers:      []corev1.Container{{Name: "first"}, {Name: "app", Image: "app:1", Args: []string{"a", "b"}, Ports: []corev1.ContainerPort{{ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}},
		SecurityContext: &corev1.PodSecurityContext{SupplementalGroups: []int64{1}},
	}}
	after := before.DeepCopy()
	app := &after.Spec.Containers[1]
	app.Image, app.Args, app.Ports[0].Name = "app:2", []string{"a", "c"}, "web"
	app.Env = []corev1.EnvVar{{Name: "NEW", Value: ""}}
	after.Spec.SecurityContext.SupplementalGroups = []int64{1, 2}
	const container = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":`
	for name, tc := range map[string]struct {
		reason string
		fields string
		want   bool
	}{
		"Image":         {"the item with this key", container + `{".":{},"f:name":{},"f:image":{}}}}}}}`, true},
		"OtherItem":     {"its image is the same", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"first\"}":{".":{},"f:image":{}}}}}}}`, false},
		"NoItem":        {"neither template has it", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"gone\"}":{".":{},"f:image":{}}}}}}}`, false},
		"Port":          {"keys may be numbers", container + `{"f:ports":{"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{"f:name":{}}}}}}}}}`, true},
		"OtherProtocol": {"all fields of a key count", container + `{"f:ports":{"k:{\"containerPort\":8080,\"protocol\":\"UDP\"}":{"f:name":{}}}}}}}}}`, false},
		"Atomic":        {"a list that is one value", container + `{"f:args":{}}}}}}}`, true},
		"Added":         {"the item itself is new, its value is empty", container + `{"f:env":{"k:{\"name\":\"NEW\"}":{".":{}}}}}}}}}`, true},
		"Same":          {"the name did not change", container + `{"f:name":{}}}}}}}`, false},
		"OldValue":      {"both have it", `{"f:spec":{"f:template":{"f:spec":{"f:securityContext":{"f:supplementalGroups":{"v:1":{}}}}}}}`, false},
		"NewValue":      {"one of a set", `{"f:spec":{"f:template":{"f:spec":{"f:securityContext":{"f:supplementalGroups":{"v:2":{}}}}}}}`, true},
		"OldIndex":      {"an item by its place", container + `{"f:args":{"i:0":{}}}}}}}}`, false},
		"NewIndex":      {"an item by its place", container + `{"f:args":{"i:1":{}}}}}}}}`, true},
		"NoIndex":       {"beyond both lists", container + `{"f:args":{"i:7":{}}}}}}}}`, false},
		"Annotation":    {"a field of this name elsewhere", `{"f:metadata":{"f:annotations":{"f:template":{}}}}`, false},
		"Broken":        {"an entry that can't be read", `{"f:spec":`, false},
	} {
		written := metav1.NewTime(time.Unix(1, 0))
		entry := metav1.ManagedFieldsEntry{Manager: "writer", Operation: metav1.ManagedFieldsOperationApply, Time: &written, FieldsV1: metav1.NewFieldsV1(tc.fields)}
		between := func(e ...metav1.ManagedFieldsEntry) []kube.Author {
			return kube.AuthorsOf(kube.Deployment(), &metav1.ObjectMeta{ManagedFields: e}).Between(before, after)
		}
		var want []kube.Author
		if tc.want {
			want = []kube.Author{{Writer: kube.Writer{Manager: "writer", At: written.Time}, Applied: true}}
		}
		if diff := cmp.Diff(want, between(entry)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
		status := metav1.ManagedFieldsEntry{Manager: "writer", Subresource: "status", Time: &written, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:observedGeneration":{}}}`)}
		if got := between(entry, status); len(got) > 0 {
			t.Errorf("%s: the workload's own controller is an author: %v", name, got)
		}
		entry.Time = nil
		if got := between(entry, metav1.ManagedFieldsEntry{Manager: "empty", Time: &written}); len(got) > 0 {
			t.Errorf("%s: an apply that changed nothing is an author: %v", name, got)
		}
	}
}

// TestRemoves: whatever is missing afterwards was removed, and whatever has another value or place wasn't.
func TestRemoves(t *testing.T) {
	t.Parallel()
	template := func(containers ...corev1.Container) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}
	}
	a, b := corev1.EnvVar{Name: "A", Value: "1"}, corev1.EnvVar{Name: "B", Value: "2"}
	web := corev1.Container{Name: "web", Image: "web:1", Args: []string{"x", "y"}, Env: []corev1.EnvVar{a, b}}
	with := func(change func(*corev1.Container)) *corev1.PodTemplateSpec {
		other := *web.DeepCopy()
		change(&other)
		return template(other)
	}
	for name, tc := range map[string]struct {
		reason string
		after  *corev1.PodTemplateSpec
		want   bool
	}{
		"Nothing":   {"it is the same", template(web), false},
		"Value":     {"another value isn't a removal", with(func(c *corev1.Container) { c.Image = "web:2"; c.Env[0].Value = "3" }), false},
		"Order":     {"a variable in another place is still there", with(func(c *corev1.Container) { c.Env = []corev1.EnvVar{b, a} }), false},
		"Args":      {"arguments are one field", with(func(c *corev1.Container) { c.Args = []string{"x"} }), false},
		"Variable":  {"a variable is gone", with(func(c *corev1.Container) { c.Env = c.Env[:1] }), true},
		"Field":     {"a field is gone", with(func(c *corev1.Container) { c.Args = nil }), true},
		"Container": {"a container has another name", with(func(c *corev1.Container) { c.Name = "api" }), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := kube.Removes(template(web), tc.after); got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	if kube.Removes(nil, template(web)) {
		t.Error("a new template removes nothing")
	}
}
