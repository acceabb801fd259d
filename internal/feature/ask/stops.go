package ask

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Stop is an operator's: no automatic change while it lasts.
type Stop struct {
	// Namespace is the stopped namespace, omitted when all namespaces are stopped.
	Namespace string `json:"namespace,omitempty"`
	// Reason is the operator's reason.
	Reason string `json:"reason,omitempty"`
	// Since is the time at which the ConfigMap with the stops was last written.
	Since *time.Time `json:"since,omitempty"`
}

// StopsIn are the stops that concern a namespace, or all when it is empty.
func (h *Heard) StopsIn(namespace string) []Stop {
	since := known(h.StoppedAt)
	if h.Stop.All != nil {
		return []Stop{{Reason: *h.Stop.All, Since: since}}
	}
	var all []Stop
	for _, name := range slices.Sorted(maps.Keys(h.Stop.Namespaces)) {
		if namespace == "" || namespace == name {
			all = append(all, Stop{Namespace: name, Reason: h.Stop.Namespaces[name], Since: since})
		}
	}
	return all
}

// StoppedBy reports whether one of the stops of a namespace counts, and its reason.
func StoppedBy(stops []Stop) (reason string, stopped bool) {
	if len(stops) == 0 {
		return "", false
	}
	return stops[0].Reason, true
}

// VersionStop is a version that failed on a workload that was healthy before, and that isn't
// delivered to further workloads.
type VersionStop struct {
	// Input is its kind and name, such as "configmap/app".
	Input string `json:"input"`
	// Version is the stopped version, omitted for a Secret that all namespaces share.
	Version string `json:"version,omitempty"`
	// FailedOn are the recorded workloads that failed with it.
	FailedOn []string `json:"failedOn"`
	// Since is the time of the failure.
	Since *time.Time `json:"since,omitempty"`
	// Waiting is the number of workloads that keep an earlier version.
	Waiting int `json:"waiting"`
}

// stoppedIn are the stopped versions among the inputs, seen from a namespace.
func (l *lineup) stoppedIn(namespace string, inputs map[input.ID]record.Delivered) []VersionStop {
	var all []VersionStop
	for id, given := range inputs {
		at := l.subjectOf(namespace, id, given)
		if l.spreads[at] == nil {
			continue
		}
		waiting := l.spreads[at].Count().Waiting
		if !l.barred[at] && (waiting > 0 || !l.failed[at]) {
			continue // a newer version is on its way, or a user resumed this one
		}
		for of, failure := range l.Failures {
			if at.isOf(of) {
				all = append(all, l.stopOf(namespace, id, of, failure, waiting))
			}
		}
	}
	sorting.By(all, func(a, b VersionStop) int {
		return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.Version, b.Version))
	})
	return all
}

// stopOf is one failed version, as users of a namespace see it.
func (l *lineup) stopOf(namespace string, id input.ID, of input.Change, failure record.Failure, waiting int) VersionStop {
	stop := VersionStop{Input: id.String(), Version: of.Version, Since: known(failure.Since), Waiting: waiting}
	if of.IsHidden() {
		stop.Version = ""
	}
	for _, failed := range failure.On {
		stop.FailedOn = append(stop.FailedOn, l.nameOf(failed, namespace))
	}
	return stop
}

// isOf reports whether a version is one of the subject. Of an image, the record of the workload has the digest and not
// the repository.
func (s subject) isOf(of input.Change) bool {
	if s.id.IsSource() {
		return of.ID == s.id && of.Namespace == s.namespace
	}
	return of.ID.Kind == input.KindImage && (of.Namespace == s.namespace || of.IsShared()) && of.Version == s.digest
}

// hasFailed reports whether the workload failed with the current version of an input.
func (f Fleet) hasFailed(key kube.Key, id input.ID, given record.Delivered) bool {
	if given.Due != "" || given.Stage != record.StageRolling {
		return false
	}
	at := f.subjectOf(key.Namespace, id, given)
	for of, failure := range f.Failures {
		isCurrent := !id.IsSource() || of.IsHidden() || of.Version == given.Mark().Digest
		if at.isOf(of) && isCurrent && failure.HasFailed(key.ID()) {
			return true
		}
	}
	return false
}
