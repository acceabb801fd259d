package kube

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// FieldManager is the field manager of Lockstep's writes.
const FieldManager = "lockstep"

// Workloads, sources and namespaces track bounds on when they were written, which only a
// comparison with the previous copy shows.
var (
	_ mirror.Tracked[*Workload]  = (*Workload)(nil)
	_ mirror.Tracked[*Source]    = (*Source)(nil)
	_ mirror.Tracked[*Namespace] = (*Namespace)(nil)
)

// writtenSince bounds a write that the previous copy lacks. A change that a list shows happened
// after the watch was last in sync.
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
