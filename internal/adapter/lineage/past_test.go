package lineage

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestPastOf: the revision of the workload's template is known only once its controller observed the
// template, and a ControllerRevision that was written after its creation may have had another number.
func TestPastOf(t *testing.T) {
	t.Parallel()
	at := func(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }
	for name, tc := range map[string]struct {
		reason         string
		image          string
		observed       int64
		written        []metav1.Time
		latest, isOnce bool
	}{
		"Observed":   {"its controller observed the template, whose defaults may differ", "app:2", 3, []metav1.Time{at(10)}, true, true},
		"Unobserved": {"the template is newer than the revision that the status names", "app:3", 2, []metav1.Time{at(10)}, false, true},
		"Same":       {"not observed, but the template is that of the revision", "app:2", 2, []metav1.Time{at(10)}, true, true},
		"Renumbered": {"it was written after its creation", "app:2", 3, []metav1.Time{at(10), at(11)}, true, false},
		"Unrecorded": {"nothing shows when it was written", "app:2", 3, nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isController := true
			labels := map[string]string{"app": "web"}
			pods := func(image string) corev1.PodTemplateSpec {
				return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}}
			}
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Generation: 3}}
			set.Spec.Selector, set.Spec.Template = &metav1.LabelSelector{MatchLabels: labels}, pods(tc.image)
			set.Status.ObservedGeneration, set.Status.UpdateRevision = tc.observed, "web-b"
			cr := &appsv1.ControllerRevision{Revision: 2, ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web-b", Labels: labels, CreationTimestamp: at(10),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "1", Controller: &isController}},
			}}
			cr.Data = runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"app:2"}]},"$patch":"replace"}}}`)}
			for _, written := range tc.written {
				cr.ManagedFields = append(cr.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Time: &written,
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:revision":{}}`),
				})
			}
			w, err := kube.SlimWorkload(kube.StatefulSet(), set, settings.Native{})
			if err != nil {
				t.Fatal(err)
			}
			var c client.Reader = fake.NewClientBuilder().WithObjects(cr).WithReturnManagedFields().Build()
			past, err := PastOf(t.Context(), c, w)
			if err != nil || len(past) != 1 {
				t.Fatalf("found %+v; error %v", past, err)
			}
			if p := past[0]; !p.Current || p.Latest != tc.latest || p.UsedOnce != tc.isOnce {
				t.Errorf("%s: it is current %t, of the template %t, used once %t; want true, %t, %t", tc.reason, p.Current, p.Latest, p.UsedOnce, tc.latest, tc.isOnce)
			}
		})
	}
}
