package lineage

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// makesPods reports whether new pods of the workload are made from a revision: the
// status names it, by its hash or by its name, or it has the workload's template. While
// a Rollout is aborted that is the stable one.
func makesPods(w *kube.Workload, o client.Object, template *corev1.PodTemplateSpec) bool {
	hash := w.Status.PodHash
	if w.Status.Aborted {
		hash = w.Status.StableHash
	}
	switch {
	case w.Kind.RevisionLabel != "":
		return hash != "" && (o.GetLabels()[w.Kind.RevisionLabel] == hash || o.GetName() == w.Key.Name+"-"+hash)
	case w.Status.UpdateRevision != "":
		return o.GetName() == w.Status.UpdateRevision
	}
	return w.HasTemplate(template)
}

// sequence orders revisions of one template: a DaemonSet may have several, and the
// newest of them is meant.
func sequence(o client.Object) int64 {
	if cr, ok := o.(*appsv1.ControllerRevision); ok {
		return cr.Revision
	}
	return 0
}
