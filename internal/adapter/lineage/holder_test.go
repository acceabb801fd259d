package lineage

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

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
