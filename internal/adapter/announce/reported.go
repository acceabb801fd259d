package announce

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Reporter is the name under which events are written.
const Reporter = kube.FieldManager

// CommandReporter is the name under which a user's command writes events and fields. They aren't
// decisions of the controller.
const CommandReporter = Reporter + "-command"

// Reported is an event that the API server still has.
type Reported struct {
	// About is the name of the object, and Version its resource version then, if the reporter
	// names it.
	About, Version string
	// At is when it was last reported.
	At      time.Time
	Warning bool
	Reason  string
	Action  string
	Note    string
	// By is the component that reported it: "lockstep", "deployment-controller".
	By string
}

// IsDecision reports whether it is about a Lockstep decision, not a warning beside one.
func (t Reported) IsDecision() bool { return t.By == Reporter && t.Action != ActionWarn }

// IsWarning reports whether it is a Lockstep warning beside a decision.
func (t Reported) IsWarning() bool { return t.By == Reporter && t.Action == ActionWarn }

// IsByHand reports whether a user's command reported it.
func (t Reported) IsByHand() bool { return t.By == CommandReporter }

// ReportedOf reads the events about an object from the API server, oldest first.
func ReportedOf(ctx context.Context, c client.Reader, namespace, uid string) ([]Reported, error) {
	all, err := list(ctx, c, namespace, fields.OneTermEqualSelector("involvedObject.uid", uid))
	if err != nil {
		return nil, fmt.Errorf("list events in namespace %s: %w", namespace, err)
	}
	return all[uid], nil
}

// ReportedIn reads Lockstep's events in a namespace, or in all when it is empty, by the UID of
// their object, each oldest first.
func ReportedIn(ctx context.Context, c client.Reader, namespace string) (map[string][]Reported, error) {
	all, err := list(ctx, c, namespace, fields.OneTermEqualSelector("reportingComponent", Reporter))
	if err != nil {
		return nil, fmt.Errorf("list the events of Lockstep: %w", err)
	}
	return all, nil
}

// ReportedOfRecord reads Lockstep's events about unwritable parts of its record in a namespace.
// The record may have become writable since.
func ReportedOfRecord(ctx context.Context, c client.Reader, namespace string) ([]Reported, error) {
	about := fields.Set{"reportingComponent": Reporter, "reason": string(input.RecordUnwritable)}
	all, err := list(ctx, c, namespace, about.AsSelector())
	if err != nil {
		return nil, fmt.Errorf("list the events of the record: %w", err)
	}
	return slices.Concat(slices.Collect(maps.Values(all))...), nil
}

func list(ctx context.Context, c client.Reader, namespace string, about fields.Selector) (map[string][]Reported, error) {
	all := map[string][]Reported{}
	for o, err := range pages.Items(ctx, c, &corev1.EventList{}, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: about}) {
		if err != nil {
			return nil, err
		}
		e := o.(*corev1.Event)
		uid := string(e.InvolvedObject.UID)
		all[uid] = append(all[uid], Reported{
			About: e.InvolvedObject.Name, Version: e.InvolvedObject.ResourceVersion,
			At: lastTime(e), Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Action: e.Action, Note: e.Message,
			By: cmp.Or(e.ReportingController, e.Source.Component),
		})
	}
	for _, reported := range all {
		sorting.By(reported, func(a, b Reported) int { return a.At.Compare(b.At) })
	}
	return all, nil
}

// lastTime is when an event was last reported. The API that wrote it determines which of the
// times is set.
func lastTime(e *corev1.Event) time.Time {
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
