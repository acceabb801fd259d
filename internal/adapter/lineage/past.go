package lineage

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	// Current is true for the revision that new pods are made from.
	Current bool
	// Latest is true for the revision of the workload's template. While a Rollout is aborted, that
	// isn't the current one.
	Latest bool
	// Pods is the revision's number of pods, nil where the revision does not show it.
	Pods     *int
	Template *corev1.PodTemplateSpec
}

// PastOf reads the revisions of a workload from the API server, unordered.
func PastOf(ctx context.Context, c client.Reader, w *kube.Workload) ([]Past, error) {
	var all []Past
	newest := -1
	err := eachRevision(ctx, c, w, func(o client.Object, template *corev1.PodTemplateSpec, current bool) {
		if current {
			newest = len(all)
		}
		p := Past{
			Name: o.GetName(), Created: o.GetCreationTimestamp().Time, Template: template.DeepCopy(),
			Number: w.Kind.RevisionNumber(o), Earlier: w.Kind.EarlierNumbers(o),
		}
		switch o := o.(type) {
		case *appsv1.ControllerRevision:
			p.Number = o.Revision
		case *appsv1.ReplicaSet:
			pods := int(o.Status.Replicas)
			p.Pods = &pods
		}
		p.Latest = w.Status.Aborted && hasHash(w, o, w.Status.PodHash)
		all = append(all, p)
	})
	if newest >= 0 {
		all[newest].Current, all[newest].Latest = true, all[newest].Latest || !w.Status.Aborted
	}
	return all, err
}
