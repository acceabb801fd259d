package lineage_test

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
)

// TestCurrentRevisionOfADaemonSet: only the revision with the DaemonSet's template
// is the current one, whatever its number.
func TestCurrentRevisionOfADaemonSet(t *testing.T) {
	t.Parallel()
	one, two := podTemplate("one"), podTemplate("two")
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "ds"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: one.Labels}, Template: two},
	}
	cases := map[string]struct {
		reason    string
		revisions []client.Object
		want      string
	}{
		"only the one before": {
			reason:    "the workload was seen before its new revision",
			revisions: []client.Object{revisionOf(t, ds, "a", 1, one)},
		},
		"both":           {revisions: []client.Object{revisionOf(t, ds, "a", 1, one), revisionOf(t, ds, "b", 2, two)}, want: "b"},
		"reverted":       {reason: "an undo gives the old revision a new number", revisions: []client.Object{revisionOf(t, ds, "a", 3, two), revisionOf(t, ds, "b", 2, one)}, want: "a"},
		"not renumbered": {reason: "the undo is seen before the number", revisions: []client.Object{revisionOf(t, ds, "a", 1, two), revisionOf(t, ds, "b", 2, one)}, want: "a"},
		"twice the same": {revisions: []client.Object{revisionOf(t, ds, "a", 1, two), revisionOf(t, ds, "b", 2, two)}, want: "b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := currentOf(t, kube.DaemonSet(), append(c.revisions, ds.DeepCopy())...); got != c.want {
				t.Errorf("%s: current is %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// TestCurrentRevisionOfADeployment: as the controller of Deployments compares them,
// the hash that it adds counts in neither template.
func TestCurrentRevisionOfADeployment(t *testing.T) {
	t.Parallel()
	hashed := func(image, hash string) corev1.PodTemplateSpec {
		template := podTemplate(image)
		template.Labels["pod-template-hash"] = hash
		return template
	}
	cases := map[string]struct {
		reason   string
		template corev1.PodTemplateSpec
		revision corev1.PodTemplateSpec
		want     string
	}{
		"same":    {reason: "the controller adds the hash", template: podTemplate("one"), revision: hashed("one", "1"), want: "web-1"},
		"another": {reason: "it is the revision of another version", template: podTemplate("two"), revision: hashed("one", "1")},
		"copied": {
			reason:   "a template that was copied from a ReplicaSet brings an old hash, which the controller overwrites",
			template: hashed("one", "0"), revision: hashed("one", "1"), want: "web-1",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "d"},
				Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: c.template},
			}
			rs := &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "web-1", UID: "rs", Labels: c.revision.Labels,
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
				},
				Spec: appsv1.ReplicaSetSpec{Template: c.revision},
			}
			if got := currentOf(t, kube.Deployment(), d, rs); got != c.want {
				t.Errorf("%s: current is %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// TestRevisionSeenBeforeTheWorkload: two watches have no common order. A revision with a higher
// number than the workload's shows that the workload was read before the deploy, even though
// everything about that state fits together.
func TestRevisionSeenBeforeTheWorkload(t *testing.T) {
	t.Parallel()
	numbered := func(kind kube.Kind, number string) map[string]string {
		return map[string]string{kind.RevisionNumbers[0]: number}
	}
	rollout := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "w", "generation": int64(14)},
		"spec":     map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}},
		"status":   map[string]any{"observedGeneration": "14", "currentPodHash": "7"},
	}}
	rollout.SetGroupVersionKind(kube.Rollout().GroupVersionKind)
	rollout.SetAnnotations(numbered(kube.Rollout(), "7"))
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", Generation: 14, Annotations: numbered(kube.Deployment(), "7")},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: podTemplate("7")},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 14},
	}
	for name, w := range map[string]struct {
		kind     kube.Kind
		workload client.Object
	}{"Rollout": {kube.Rollout(), rollout}, "Deployment": {kube.Deployment(), deployment}} {
		revision := func(number string) client.Object {
			template := podTemplate(number)
			return &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "web-" + number, UID: types.UID(number), Labels: template.Labels, Annotations: numbered(w.kind, number),
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.workload, w.kind.GroupVersionKind)},
				},
				Spec: appsv1.ReplicaSetSpec{Template: template},
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if h := historyOf(t, w.kind, w.workload, revision("6"), revision("7")); !h.Observed || h.Current == nil || h.Current.Name != "web-7" {
				t.Errorf("before the deploy: %+v", h)
			}
			if h := historyOf(t, w.kind, w.workload, revision("7"), revision("8")); h.Observed {
				t.Errorf("with the deploy's revision: the current one is %s", h.Current)
			}
		})
	}
}

// currentOf is the name of the current revision of the workload "web".
func currentOf(t *testing.T, kind kube.Kind, world ...client.Object) (name string) {
	t.Helper()
	if h := historyOf(t, kind, world...); h.Current != nil {
		name = h.Current.Name
	}
	return name
}

// historyOf is the first history of the workload "web".
func historyOf(t *testing.T, kind kube.Kind, world ...client.Object) (first lineage.History) {
	t.Helper()
	own := runtime.NewScheme() // The client adds the kinds that it doesn't know.
	if err := scheme.AddToScheme(own); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(own).WithObjects(world...).Build()
	err := lineage.FollowHistory(t.Context(), c, kind, types.NamespacedName{Namespace: "shop", Name: "web"}, func(h lineage.History) bool {
		first = h
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return first
}

func podTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
	}
}

// revisionOf is a ControllerRevision as the controller of DaemonSets writes it.
func revisionOf(t *testing.T, ds *appsv1.DaemonSet, name string, number int64, template corev1.PodTemplateSpec) client.Object {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ds.Namespace, Name: name, UID: types.UID(name), Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: number,
	}
}
