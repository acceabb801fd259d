package lineage

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// isCurrent reports whether new pods of the workload are made from the ReplicaSet: its
// template is the workload's, or Argo Rollouts says so. While a Rollout is aborted that
// is the stable one.
func isCurrent(w *kube.Workload, rs *appsv1.ReplicaSet) bool {
	if w.Key.GroupKind != kube.Rollout().GroupKind() {
		return w.HasTemplate(&rs.Spec.Template)
	}
	hash := w.Status.PodHash
	if w.Status.Aborted {
		hash = w.Status.StableHash
	}
	return hash != "" && (rs.Labels[rolloutHashLabel] == hash || rs.Name == w.Key.Name+"-"+hash)
}

// makesPods reports whether new pods of the workload may be made from the
// ControllerRevision. A StatefulSet names it, that of a DaemonSet has its template.
func makesPods(w *kube.Workload, cr *appsv1.ControllerRevision, template *corev1.PodTemplateSpec) bool {
	if w.Status.UpdateRevision != "" {
		return cr.Name == w.Status.UpdateRevision
	}
	return w.HasTemplate(template)
}

// earlierNumbers are those that a ReplicaSet had before it was used again.
func earlierNumbers(o client.Object) []int64 {
	var numbers []int64
	for _, key := range []string{"deployment.kubernetes.io/revision-history", "rollout.argoproj.io/revision-history"} {
		for text := range strings.SplitSeq(o.GetAnnotations()[key], ",") {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
}
