package announce

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// Told is an event that the API server still has.
type Told struct {
	// At is when it was last told.
	At      time.Time
	Warning bool
	Reason  string
	Note    string
	// By is the component that told it: "lockstep", "deployment-controller".
	By string
}

// ToldOf asks the API server for the events about a workload, oldest first.
func ToldOf(ctx context.Context, c client.Reader, w *kube.Workload) ([]Told, error) {
	list := &corev1.EventList{}
	about := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.uid", w.UID)}
	if err := c.List(ctx, list, client.InNamespace(w.Key.Namespace), about); err != nil {
		return nil, fmt.Errorf("list the events of %s: %w", w.Key, err)
	}
	all := make([]Told, len(list.Items))
	for i, e := range list.Items {
		all[i] = Told{At: lastTime(e), Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Note: e.Message, By: cmp.Or(e.ReportingController, e.Source.Component)}
	}
	slices.SortStableFunc(all, func(a, b Told) int { return a.At.Compare(b.At) })
	return all, nil
}

// lastTime is when an event was last told. Which of the times is set depends on the API by
// which it was written.
func lastTime(e corev1.Event) time.Time {
	latest := e.CreationTimestamp.Time
	for _, t := range []time.Time{e.EventTime.Time, e.LastTimestamp.Time} {
		if t.After(latest) {
			latest = t
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(latest) {
		latest = e.Series.LastObservedTime.Time
	}
	return latest
}
