package kube_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// owned is an entry of managed fields: a manager and what it owns of the pod template.
func owned(manager, fields string) metav1.ManagedFieldsEntry {
	written := metav1.NewTime(time.Unix(1, 0))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &written, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":` + fields + `}}`)}
}

// Parts of a template in managed fields.
const (
	ofContainer = `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{`
	container   = `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:name":{},"f:image":{}}},"f:securityContext":{}}}`
	ofImage     = ofContainer + `"f:image":{}}}}}`
	ofEnv       = ofContainer + `"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}}}}}}`
	ofPorts     = ofContainer + `"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{},"f:name":{}}}}}}}`
	ofMounts    = ofContainer + `"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/a\"}":{".":{},"f:mountPath":{},"f:name":{},"f:subPath":{}},"k:{\"mountPath\":\"/b\"}":{".":{},"f:mountPath":{},"f:name":{},"f:subPath":{}}}}}}}`
)

// TestAuthorsBetween: a manager is the author only if it owns every difference of two templates.
func TestAuthorsBetween(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason        string
		before, after func(*corev1.PodSpec)
		entries       []metav1.ManagedFieldsEntry
		want          string
	}{
		"Image":        {"it owns the image", nil, setImage, []metav1.ManagedFieldsEntry{owned("set", ofImage)}, "set"},
		"Unrelated":    {"the other one's fields are the same", nil, setImage, []metav1.ManagedFieldsEntry{owned("set", ofImage), owned("helm", `{"f:metadata":{"f:labels":{"f:app":{}}}}`)}, "set"},
		"Shared":       {"two own the image", nil, setImage, []metav1.ManagedFieldsEntry{owned("set", ofImage), owned("helm", container)}, ""},
		"NotOwned":     {"no manager owns what changed", nil, func(s *corev1.PodSpec) { setImage(s); s.NodeName = "x" }, []metav1.ManagedFieldsEntry{owned("set", ofImage)}, ""},
		"OtherItem":    {"the container with this key isn't the one that changed", nil, setImage, []metav1.ManagedFieldsEntry{owned("set", `{"f:spec":{"f:containers":{"k:{\"name\":\"other\"}":{"f:image":{}}}}}`)}, ""},
		"Elsewhere":    {"a field of the same name elsewhere", nil, setImage, []metav1.ManagedFieldsEntry{owned("set", `{"f:metadata":{"f:image":{}}}`)}, ""},
		"Ancient":      {"the API server merges the oldest entries of more than ten", nil, setImage, []metav1.ManagedFieldsEntry{owned("ancient-changes", ofImage)}, ""},
		"BeforeApply":  {"the API server doesn't know who wrote before the first apply", nil, setImage, []metav1.ManagedFieldsEntry{owned("before-first-apply", ofImage)}, ""},
		"Unnamed":      {"a manager without a name", nil, setImage, []metav1.ManagedFieldsEntry{owned("", ofImage)}, ""},
		"Broken":       {"an entry that can't be read", nil, setImage, []metav1.ManagedFieldsEntry{owned("set", `{"f:spec":`)}, ""},
		"Variable":     {"a new variable, whose value is empty", nil, func(s *corev1.PodSpec) { app(s).Env = append(app(s).Env, corev1.EnvVar{Name: "B"}) }, []metav1.ManagedFieldsEntry{owned("set", ofEnv)}, "set"},
		"Defaults":     {"the API server adds defaults to a new probe, which no manager owns", nil, func(s *corev1.PodSpec) { app(s).LivenessProbe = &corev1.Probe{TimeoutSeconds: 1} }, []metav1.ManagedFieldsEntry{owned("flux", ofContainer+`"f:livenessProbe":{"f:exec":{}}}}}}`)}, "flux"},
		"Arguments":    {"a list that is one field", args("a", "b"), args("b"), []metav1.ManagedFieldsEntry{owned("set", ofContainer+`"f:args":{}}}}}`)}, "set"},
		"EmptyOwner":   {"the owner of an empty security context doesn't own what is added", nil, func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1))} }, []metav1.ManagedFieldsEntry{owned("helm", container), owned("edit", `{"f:spec":{"f:securityContext":{"f:runAsUser":{}}}}`)}, "edit"},
		"Emptied":      {"nor what is removed", func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1))} }, nil, []metav1.ManagedFieldsEntry{owned("helm", container)}, ""},
		"FieldGone":    {"no manager owns a removed field", func(s *corev1.PodSpec) { s.NodeName = "x" }, setImage, []metav1.ManagedFieldsEntry{owned("set", ofImage)}, ""},
		"VariableGone": {"nor a removed variable", func(s *corev1.PodSpec) { app(s).Env = append(app(s).Env, corev1.EnvVar{Name: "B", Value: "2"}) }, setImage, []metav1.ManagedFieldsEntry{owned("set", ofImage), owned("helm", ofEnv)}, ""},
		"PortGone":     {"nor a removed port, which has no name", ports(80, 90), func(s *corev1.PodSpec) { setImage(s); ports(80)(s) }, []metav1.ManagedFieldsEntry{owned("set", ofImage), owned("helm", ofPorts)}, ""},
		"PortNamed":    {"keys may be numbers", ports(80), func(s *corev1.PodSpec) { ports(80)(s); app(s).Ports[0].Name = "web" }, []metav1.ManagedFieldsEntry{owned("set", ofPorts)}, "set"},
		"Protocol":     {"all fields of a key count", ports(80), func(s *corev1.PodSpec) { ports(80)(s); app(s).Ports[0].Protocol = corev1.ProtocolUDP }, []metav1.ManagedFieldsEntry{owned("set", ofPorts)}, ""},
		"Mounts":       {"two mounts of a volume are told apart by their path", mounts("/a", "1", "/b", "2"), mounts("/a", "1", "/b", "3"), []metav1.ManagedFieldsEntry{owned("set", ofMounts)}, "set"},
		"MountGone":    {"one of two mounts of a volume is removed", mounts("/a", "1", "/b", "2"), func(s *corev1.PodSpec) { setImage(s); mounts("/a", "1")(s) }, []metav1.ManagedFieldsEntry{owned("set", ofImage), owned("helm", ofMounts)}, ""},
		"Reordered":    {"no manager owns the order of a list", mounts("/a", "1", "/b", "2"), func(s *corev1.PodSpec) { setImage(s); mounts("/b", "2", "/a", "1")(s) }, []metav1.ManagedFieldsEntry{owned("set", ofImage), owned("helm", ofMounts)}, ""},
		"Twins":        {"items with the same key can't be told apart", mounts("/a", "1", "/a", "2"), mounts("/a", "1", "/a", "3"), []metav1.ManagedFieldsEntry{owned("set", ofMounts)}, ""},
		"Created":      {"the only owner of a new template", nil, nil, []metav1.ManagedFieldsEntry{owned("helm", container)}, "helm"},
		"CreatedByTwo": {"two owners of a new template", nil, nil, []metav1.ManagedFieldsEntry{owned("helm", container), owned("edit", ofEnv)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := templateWith("two", tc.after)
			before := templateWith("one", tc.before)
			if tc.before == nil && tc.after == nil {
				before = nil
			}
			check := func(want, reason string, entries ...metav1.ManagedFieldsEntry) {
				t.Helper()
				got, known := kube.AuthorsOf(kube.Deployment(), &metav1.ObjectMeta{ManagedFields: entries}).Between(before, after)
				if known != (want != "") || known && got.Manager != want {
					t.Errorf("%s: by %q (%t), want %q", reason, got.Manager, known, want)
				}
			}
			check(tc.want, tc.reason, tc.entries...)
			if tc.want == "" {
				return
			}
			status := metav1.ManagedFieldsEntry{Manager: tc.want, Subresource: "status", Time: tc.entries[0].Time, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:observedGeneration":{}}}`)}
			check("", "the workload's own controller isn't an author", append(slices.Clone(tc.entries), status)...)
			untimed := slices.Clone(tc.entries)
			for i := range untimed {
				untimed[i].Time = nil
			}
			check("", "an apply that changed nothing", untimed...)
		})
	}
}

// templateWith is a template of a revision.
func templateWith(hash string, change func(*corev1.PodSpec)) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers:      []corev1.Container{{Name: "app", Image: "app:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}},
		SecurityContext: &corev1.PodSecurityContext{},
	}}
	t.Labels = map[string]string{kube.RevisionHashLabels()[0]: hash}
	if change != nil {
		change(&t.Spec)
	}
	return t
}

func app(s *corev1.PodSpec) *corev1.Container { return &s.Containers[0] }

func setImage(s *corev1.PodSpec) { app(s).Image = "app:2" }

func args(all ...string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { app(s).Args = all }
}

func ports(all ...int32) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		for _, number := range all {
			app(s).Ports = append(app(s).Ports, corev1.ContainerPort{ContainerPort: number, Protocol: corev1.ProtocolTCP})
		}
	}
}

// mounts are mounts of one volume, each with its path and the directory in the volume.
func mounts(all ...string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		for pair := range slices.Chunk(all, 2) {
			app(s).VolumeMounts = append(app(s).VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: pair[0], SubPath: pair[1]})
		}
	}
}
