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

// Bounds of the events that are kept: whoever may create events can create many, each with 1 MiB.
const (
	mostOfOne = 100
	mostOfAll = 20_000
)

func list(ctx context.Context, c client.Reader, namespace string, about fields.Selector) (map[string][]Reported, error) {
	all, kept := map[string][]Reported{}, 0
	for o, err := range pages.Items(ctx, c, &corev1.EventList{}, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: about}) {
		if err != nil {
			return nil, err
		}
		e := o.(*corev1.Event)
		uid := kube.Cut(string(e.InvolvedObject.UID))
		before := len(all[uid])
		if kept >= mostOfAll && before == 0 {
			continue
		}
		all[uid] = newest(append(all[uid], reportedBy(e)), 2*mostOfOne)
		kept += len(all[uid]) - before
	}
	for uid, reported := range all {
		all[uid] = newest(reported, 0)
	}
	return all, nil
}

// reportedBy is what is kept of an event.
func reportedBy(e *corev1.Event) Reported {
	return Reported{
		About: kube.Cut(e.InvolvedObject.Name), Version: kube.Cut(e.InvolvedObject.ResourceVersion),
		At: lastTime(e), Warning: e.Type == corev1.EventTypeWarning, Reason: kube.Cut(e.Reason), Action: kube.Cut(e.Action), Note: ShortNote(e.Message),
		By: kube.Cut(cmp.Or(e.ReportingController, e.Source.Component)),
	}
}

// newest are the newest events of an object, oldest first. It does nothing until there are more
// than so many.
func newest(reported []Reported, from int) []Reported {
	if len(reported) <= from {
		return reported
	}
	sorting.By(reported, func(a, b Reported) int { return a.At.Compare(b.At) })
	return slices.Clone(reported[max(0, len(reported)-mostOfOne):])
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
