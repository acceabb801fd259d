package ask

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// SourceExplanation lists the workloads that follow a ConfigMap or Secret, and its
// events.
type SourceExplanation struct {
	Namespace  string     `json:"namespace"`
	Source     string     `json:"source"`
	Controller Controller `json:"controller"`
	// ChangedBy and ChangedAt are the last writer of its content, as far as its managed
	// fields show.
	ChangedBy string     `json:"changedBy,omitempty"`
	ChangedAt *time.Time `json:"changedAt,omitempty"`
	// Owners are the objects that it is removed with.
	Owners []string `json:"owners,omitempty"`
	// Stops are what an operator stopped, StoppedVersions is the source's own that failed, and
	// Spread is how the current one reaches the workloads.
	Stops           []Stop        `json:"stops,omitempty"`
	StoppedVersions []VersionStop `json:"stoppedVersions,omitempty"`
	Spread          []Spreading   `json:"spread,omitempty"`
	Settings        []Setting     `json:"settings,omitempty"`
	Users           []SourceUser  `json:"users,omitempty"`
	// Events are Lockstep's events about it, oldest first.
	Events []Event  `json:"events,omitempty"`
	Notes  []string `json:"notes,omitempty"`
	// RecordHidden is true when the caller has no permission to read the record.
	RecordHidden bool `json:"recordHidden,omitempty"`
}

// SourceUser is a workload that follows the source.
type SourceUser struct {
	Workload  string `json:"workload"`
	State     Report `json:"state"`
	Delivered string `json:"delivered"`
	Current   string `json:"current"`
}

// Source is what was read about a ConfigMap or Secret.
type Source struct {
	ID         input.ID
	Namespace  string
	Controller Controller
	// Object is nil when it cannot be read, or does not exist.
	Object *metav1.PartialObjectMetadata
	// Fleet is what the record says about workloads, and Kinds are their kinds, for display.
	Fleet  Fleet
	Kinds  []kube.Kind
	Events []announce.Reported
	Unread []string
	// Stops are what an operator stopped.
	Stops []Stop
	// RecordHidden is true when the record cannot be read, and Gone when the object does not
	// exist.
	RecordHidden, Gone bool
}

// ExplainSource lists the workloads that follow a source.
func ExplainSource(s Source) SourceExplanation {
	e := SourceExplanation{Namespace: s.Namespace, Source: s.ID.String(), Controller: s.Controller, Users: s.users(), Notes: s.Unread, RecordHidden: s.RecordHidden, Stops: s.Stops}
	lines := s.Fleet.lineup()
	e.Spread, e.StoppedVersions = lines.ofSource(s.Namespace, s.ID), lines.stoppedIn(s.Namespace, map[input.ID]record.Delivered{s.ID: {}})
	for _, t := range s.Events {
		if event := eventOf(t); event.IsOurs() {
			e.Events = append(e.Events, event)
		}
	}
	if s.Object == nil {
		return e
	}
	if writer := kube.DataWriter(s.Object); writer.Manager != "" {
		e.ChangedBy, e.ChangedAt = writer.Manager, known(writer.At)
	}
	for _, owner := range s.Object.OwnerReferences {
		e.Owners = append(e.Owners, strings.ToLower(owner.Kind)+"/"+owner.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Object.Annotations)) {
		if (settings.Native{}).Knows(key, nil) {
			e.Settings = append(e.Settings, Setting{Key: key, Value: s.Object.Annotations[key], On: strings.ToLower(string(s.ID.Kind))})
		}
	}
	return e
}

// users are the workloads with the source on record, those that aren't in step first.
func (s *Source) users() []SourceUser {
	var all []SourceUser
	for key, entry := range s.Fleet.Entries {
		given, follows := entry.Inputs[s.ID]
		if !follows || !entry.GoneAt.IsZero() || key.Namespace != s.Namespace {
			continue
		}
		on := inputOnRecord(s.ID, given)
		if s.Gone {
			on.Current = "absent"
		}
		state := s.Fleet.State(onRecord(entry), key, true, false)
		if state.From == FromFlags {
			on.Current = "not known" // the record is from when the controller still followed it
		}
		all = append(all, SourceUser{Workload: nameAmong(s.Kinds, key), State: state, Delivered: on.Delivered, Current: on.Current})
	}
	sorting.By(all, func(a, b SourceUser) int {
		return cmp.Or(compareStates(&a.State, &b.State), cmp.Compare(a.Workload, b.Workload))
	})
	return all
}

// nameAmong is a workload's display name. The kinds are those of the controller, as far as they
// are known.
func nameAmong(kinds []kube.Kind, key kube.Key) string {
	for _, kind := range append(kube.Kinds(), kinds...) {
		if kind.GroupKind() == key.GroupKind {
			return kind.Name() + "/" + key.Name
		}
	}
	return strings.ToLower(key.GroupKind.String()) + "/" + key.Name
}
