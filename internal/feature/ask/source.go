package ask

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// SourceExplanation lists the workloads that follow a ConfigMap or Secret, and its
// events.
type SourceExplanation struct {
	Namespace string `json:"namespace"`
	// Source is its kind and name, such as "configmap/app".
	Source string `json:"source"`
	// Controller is the state of the controller itself.
	Controller Controller `json:"controller"`
	// WrittenBy is the program with the latest write among those that own its content, according to its
	// managed fields. That write may have been to another field, such as a label.
	WrittenBy string `json:"writtenBy,omitempty"`
	// WrittenAt is the time of that write.
	WrittenAt *time.Time `json:"writtenAt,omitempty"`
	// Owners are the owners of the object. Kubernetes deletes it when its last owner is deleted.
	Owners []string `json:"owners,omitempty"`
	Flow
	// Settings are the Lockstep annotations of the object.
	Settings []Setting `json:"settings,omitempty"`
	// Users are the workloads that follow it.
	Users []SourceUser `json:"users,omitempty"`
	// Events are Lockstep's events about it, oldest first.
	Events []Event `json:"events,omitempty"`
	// Notes are messages about objects that could not be read.
	Notes []string `json:"notes,omitempty"`
	// Gone is true when the object doesn't exist any more.
	Gone bool `json:"gone,omitempty"`
	// RecordHidden is true when the caller has no permission to read the record.
	RecordHidden bool `json:"recordHidden,omitempty"`
	// Hidden is the reason why the current version can't be read. `current` of each user is then
	// the recorded version.
	Hidden string `json:"hidden,omitempty"`
}

// SourceUser is a workload that follows the source.
type SourceUser struct {
	Workload string `json:"workload"`
	// State is the controller's decision. It is an estimate if the controller last decided InStep
	// although the current version differs from the delivered one. A deleted source may be in step
	// while the controller runs: pods can start without an optional source.
	State Report `json:"state"`
	// Delivered is the last delivered version.
	Delivered string `json:"delivered"`
	// Current is the current version of the keys that the workload uses.
	Current string `json:"current"`
}

// versionNotKnown stands for a current version that isn't known.
const versionNotKnown = "not known"

// Source is what was read about a ConfigMap or Secret.
type Source struct {
	ID         input.ID
	Namespace  string
	Controller Controller
	// Object is its metadata, nil when it cannot be read, or does not exist.
	Object *metav1.ObjectMeta
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
	// Now is the object as digests, nil when it can't be read, and Hidden is why.
	Now    *kube.Source
	Hidden string
	// Keys are the sets of keys that workloads use, as far as they are known.
	Keys []fingerprint.Keys
}

// ExplainSource lists the workloads that follow a source.
func ExplainSource(s Source) SourceExplanation {
	e := SourceExplanation{Namespace: s.Namespace, Source: s.ID.String(), Controller: s.Controller, Users: s.users(), Notes: s.Unread, RecordHidden: s.RecordHidden, Hidden: s.Hidden, Gone: s.Gone, Flow: Flow{Stops: s.Stops}}
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
		e.WrittenBy, e.WrittenAt = writer.Manager, known(writer.At)
	}
	for _, owner := range s.Object.OwnerReferences {
		e.Owners = append(e.Owners, objectname.Short(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind(), owner.Name))
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
		if s.isUser(key, &entry) {
			all = append(all, s.user(key, &entry))
		}
	}
	sorting.By(all, func(a, b SourceUser) int {
		return cmp.Or(compareStates(&a.State, &b.State), cmp.Compare(a.Workload, b.Workload))
	})
	return all
}

// isUser reports whether a workload that exists has the source on record.
func (s *Source) isUser(key kube.Key, entry *record.Entry) bool {
	_, follows := entry.Inputs[s.ID]
	return follows && entry.GoneAt.IsZero() && key.Namespace == s.Namespace
}

// user is a workload with the source on record.
func (s *Source) user(key kube.Key, entry *record.Entry) SourceUser {
	given := entry.Inputs[s.ID]
	on := inputOnRecord(s.ID, given)
	u := SourceUser{
		Workload: key.Short(), Delivered: on.Delivered, Current: on.Current,
		State: s.Fleet.State(onRecord(*entry), key, true, false),
	}
	now, is := s.now(given.Version)
	switch {
	case s.Gone:
		u.Current = "absent"
		if u.State.IsInStep() && !given.Version.IsAbsent() && s.Controller.State != Running {
			u.State = undecided("it was deleted, and the controller may not have checked that")
		}
	case is:
		u.Current = on.Delivered
	case !now.IsZero():
		u.Current = now.Short()
		if u.State.IsInStep() {
			u.State = undecided("its current version is not on record yet")
		}
	case u.State.From == FromFlags, s.Now != nil && s.Controller.State != Running:
		u.Current = versionNotKnown // the one on record may be outdated
	}
	return u
}

// now is the current version of the keys that the version on record covers, zero when those aren't
// known, and whether it is the version on record.
func (s *Source) now(onRecord fingerprint.Version) (now fingerprint.Version, is bool) {
	if s.Now == nil {
		return fingerprint.Version{}, false
	}
	for _, keys := range s.Keys {
		now := s.Now.Content.Version(keys)
		if was := onRecord.ComparedWith(now); was.Comparable(now) {
			return now, was == now
		}
	}
	return fingerprint.Version{}, false
}

// kindAmong is a workload's kind: a default one, or one of the controller's, as far as they are
// known.
func kindAmong(kinds []kube.Kind, key kube.Key) (kube.Kind, bool) {
	for _, kind := range append(kube.Kinds(), kinds...) {
		if kind.GroupKind() == key.GroupKind {
			return kind, true
		}
	}
	return kube.Kind{}, false
}
