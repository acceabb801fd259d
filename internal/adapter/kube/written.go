package kube

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// FieldManager is the name under which Lockstep's writes show in managed fields.
const FieldManager = "lockstep"

// What is kept of workloads, sources and namespaces bounds when it was written, which
// only a comparison with the copy before can tell.
var (
	_ mirror.Tracked[*Workload]  = (*Workload)(nil)
	_ mirror.Tracked[*Source]    = (*Source)(nil)
	_ mirror.Tracked[*Namespace] = (*Namespace)(nil)
)

// writtenSince bounds a write that the copy of before does not have. What a list shows has
// happened since the watch was in step.
func writtenSince(before, after string, how mirror.Arrival) timeline.Bounds {
	written := timeline.WrittenBetween(before, after, how.Watched)
	if since := timeline.WrittenBetween(how.Since, after, how.Watched); since.Min <= written.Max {
		written.Min = max(written.Min, since.Min)
	}
	return written
}

// WrittenBy is when the manager last wrote the object, by the API server's clock.
func WrittenBy(o metav1.Object, manager string) time.Time {
	var latest time.Time
	for _, e := range o.GetManagedFields() {
		if e.Manager == manager && e.Time != nil && e.Time.After(latest) {
			latest = e.Time.Time
		}
	}
	return latest
}
