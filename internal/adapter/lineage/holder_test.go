package lineage

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// TestLongControllers: a UID of a megabyte isn't kept, and isn't that of another controller.
func TestLongControllers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1<<20)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: types.UID(long), Controller: new(true)}}}}
	h, err := NewHolder(kube.ReplicaSets(), kube.Kinds(), rs)
	if err != nil {
		t.Fatal(err)
	}
	if !h.Holds() || len(h.ControllerUID) > 1<<10 {
		t.Errorf("holds is %t, and %d bytes of the UID are kept", h.Holds(), len(h.ControllerUID))
	}
	if controlledBy(rs, "a") {
		t.Error("the beginning of the UID counts as the UID")
	}
}

// TestJobsThatHold: an object goes with its owners, so a Job may own one only when
// something that outlives it names the object too.
func TestJobsThatHold(t *testing.T) {
	t.Parallel()
	ended := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
	cases := map[string]struct {
		reason     string
		apiVersion string
		kind       string
		status     batchv1.JobStatus
		want       bool
	}{
		"of a CronJob":      {reason: "the CronJob holds what its next Jobs need", apiVersion: "batch/v1", kind: "CronJob", want: true},
		"of an old CronJob": {reason: "the version of the API is no other kind", apiVersion: "batch/v1beta1", kind: "CronJob", want: true},
		"ended":             {reason: "no pod will be made from it", apiVersion: "batch/v1", kind: "CronJob", status: ended},
		"of a ScaledJob":    {reason: "it would take the object with it, and the next one needs it", apiVersion: "keda.sh/v1alpha1", kind: "ScaledJob"},
		"of a namesake":     {reason: "Lockstep does not know what that CronJob holds", apiVersion: "batch.example.org/v1", kind: "CronJob"},
		"of nobody":         {reason: "it comes and goes by hand"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &batchv1.Job{Status: c.status}
			if c.kind != "" {
				yes := true
				job.OwnerReferences = []metav1.OwnerReference{{APIVersion: c.apiVersion, Kind: c.kind, Name: "web", UID: "uid", Controller: &yes}}
			}
			h, err := NewHolder(kube.Jobs(), kube.Kinds(), job)
			if err != nil {
				t.Fatal(err)
			}
			if h.Holds() != c.want {
				t.Errorf("%s: holds is %t, want %t", c.reason, h.Holds(), c.want)
			}
		})
	}
}
