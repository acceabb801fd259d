package lineage

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// makesPods reports whether new pods of the workload are made from a revision: the status names
// it by hash or name, or it has the workload's template. While a Rollout is aborted, that is the
// stable revision.
func makesPods(w *kube.Workload, o client.Object, template *corev1.PodTemplateSpec) bool {
	hash := w.Status.PodHash
	if w.Status.Aborted {
		hash = w.Status.StableHash
	}
	switch {
	case w.Kind.RevisionLabel != "":
		return hasHash(w, o, hash)
	case w.Status.UpdateRevision != "":
		return o.GetName() == w.Status.UpdateRevision
	}
	return w.HasTemplate(template)
}

func hasHash(w *kube.Workload, o client.Object, hash string) bool {
	return hash != "" && (o.GetLabels()[w.Kind.RevisionLabel] == hash || o.GetName() == w.Key.Name+"-"+hash)
}

// isMade reports whether a revision that the status names was made from the workload's present template.
// Until its controller observed the template, the status names the revision of an earlier one.
func isMade(w *kube.Workload, o client.Object, template *corev1.PodTemplateSpec) bool {
	return w.HasTemplate(template) || w.Status.Observed && !isBehind(w, o, w.Kind.RevisionNumber(o))
}

// isBehind reports whether a Rollout's status still has the hash of this revision while its
// annotation has the number of another one. When another template replaces a canary, Argo
// Rollouts writes the number, then the observed generation, and then the hash together with the
// end of the abort.
func isBehind(w *kube.Workload, o client.Object, number int64) bool {
	return w.Kind.RevisionLabel != "" && hasHash(w, o, w.Status.PodHash) && number > 0 && w.Revision > 0 && number != w.Revision
}

// sequence orders revisions of one template: a DaemonSet may have several, and the newest one
// counts.
func sequence(o client.Object) int64 {
	if cr, ok := o.(*appsv1.ControllerRevision); ok {
		return cr.Revision
	}
	return 0
}
