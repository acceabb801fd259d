package pods

import (
	"slices"
	"strings"
	"time"
)

// Starts are when the pods of one revision started: for each moment the earliest one of all pods.
// A moment is zero when no pod has come that far. Pods that are about to end don't count, and
// neither do pods that no node has accepted: they load the current content.
type Starts struct {
	// Asked is false before the pods were listed, Unknown true when they can't be.
	Asked, Unknown bool
	// Created is by the API server's clock, Accepted and Started by those of the nodes: a node
	// mounts volumes after it has accepted a pod, and reads the environment when it starts a container.
	Created, Accepted, Started time.Time
	// Version is the lowest resource version of all pods.
	Version uint64
	// Older is true when pods of another revision run: those of this one may never come.
	Older bool
}

// StartsOf are the starts of the pods of a revision. Without its name, they are those of all pods.
func StartsOf(all []Pod, revision string) Starts {
	s := Starts{Asked: true}
	for _, p := range all {
		if p.Terminating || p.Accepted.IsZero() {
			continue
		}
		if !p.isOf(revision) {
			s.Older = true
			continue
		}
		s.Created, s.Accepted, s.Started = Earlier(s.Created, p.Created), Earlier(s.Accepted, p.Accepted), Earlier(s.Started, p.Started)
		if s.Version == 0 || p.Version < s.Version {
			s.Version = p.Version
		}
	}
	return s
}

// isOf reports whether a pod may be of the revision. A pod of a DaemonSet names only the end of its
// revision's name.
func (p Pod) isOf(revision string) bool {
	return revision == "" || p.Revision == "" || p.Revision == revision || strings.HasSuffix(revision, "-"+p.Revision)
}

// Earlier is the earlier one of two times that are known.
func Earlier(a, b time.Time) time.Time {
	known := slices.DeleteFunc([]time.Time{a, b}, time.Time.IsZero)
	if len(known) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(known, time.Time.Compare)
}

// MayBeAfter reports whether nothing shows that a pod was last written before that resource version.
func (s Starts) MayBeAfter(version uint64) bool {
	return s.Unknown || s.Accepted.IsZero() || s.Version > version
}

// SinceArrival reports whether no pod has started before a source for which it waited was created. Times have
// a resolution of a second. A node accepts a pod that waits, and doesn't start its containers.
func (s Starts) SinceArrival(created time.Time) bool {
	return s.Asked && !s.Unknown && (s.Started.IsZero() || !s.Started.Before(created))
}

// moment is longer than a node takes from reading the environment to the start of the container.
const moment = time.Second

// After reports whether all pods certainly loaded content that was last written at that time, in an
// object with that resource version. Times have a resolution of a second, so a start in the second
// of the write proves nothing. A write that only removes a key leaves no time; the object then has
// a later resource version than a pod that hasn't changed since its start. A node mounts volumes
// before it pulls images, so content in a volume may be much older than the containers.
func (s Starts) After(written time.Time, version uint64, mounted bool) bool {
	switch {
	case !s.Asked || s.Unknown:
		return false
	case s.Accepted.IsZero():
		return !s.Older
	case written.IsZero() || s.Version <= version:
		return false
	case s.Created.After(written), s.Accepted.After(written):
		return true
	}
	return !mounted && (s.Started.IsZero() || s.Started.After(written.Add(moment)))
}
