package lineage

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// Past is one revision of a workload, for a user who inspects its history.
type Past struct {
	Name    string
	Created time.Time
	// Number is the revision's number, and Earlier are the numbers that it had before it was
	// used again, if its controller stores them.
	Number  int64
	Earlier []int64
	// UsedOnce is true for a revision whose controller doesn't store earlier numbers, and that
	// certainly never had another one.
	UsedOnce bool
	// Current is true for the revision that new pods are made from.
	Current bool
	// Latest is true for the revision that certainly has the workload's template. While a Rollout is
	// aborted, that isn't the current one.
	Latest bool
	// Pods is the revision's number of pods, nil where the revision does not show it.
	Pods     *int
	Template *corev1.PodTemplateSpec
}

// PastOf reads the revisions of a workload from the API server, unordered.
func PastOf(ctx context.Context, c client.Reader, w *kube.Workload) ([]Past, error) {
	var all []Past
	newest, made := -1, false
	err := eachRevision(ctx, c, w, func(o client.Object, template *corev1.PodTemplateSpec, current bool) {
		if current {
			newest, made = len(all), isMade(w, o, template)
		}
		p := Past{
			Name: o.GetName(), Created: o.GetCreationTimestamp().Time, Template: template.DeepCopy(),
			Number: w.Kind.RevisionNumber(o), Earlier: w.Kind.EarlierNumbers(o),
		}
		switch o := o.(type) {
		case *appsv1.ControllerRevision:
			p.Number, p.UsedOnce = o.Revision, isUnwritten(o)
		case *appsv1.ReplicaSet:
			pods := int(o.Status.Replicas)
			p.Pods = &pods
		}
		p.Latest = w.Status.Aborted && hasHash(w, o, w.Status.PodHash) && isMade(w, o, template)
		all = append(all, p)
	})
	if newest >= 0 {
		all[newest].Current, all[newest].Latest = true, all[newest].Latest || made && !w.Status.Aborted
	}
	return all, err
}

// isUnwritten reports whether the managed fields prove that a revision wasn't written since it was
// created. A ControllerRevision is written when it gets another number.
func isUnwritten(cr *appsv1.ControllerRevision) bool {
	isLater := func(e metav1.ManagedFieldsEntry) bool {
		return e.Time == nil || e.Time.After(cr.CreationTimestamp.Time)
	}
	return len(cr.ManagedFields) > 0 && !slices.ContainsFunc(cr.ManagedFields, isLater)
}
