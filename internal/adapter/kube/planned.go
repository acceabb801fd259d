package kube

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// plannedName stands for the revision that a planned template would get.
const plannedName = "planned"

// PlannedAfter turns a planned workload into its expected state after the API server has stored
// it at that version and its controller has acted on it. Old is the current workload, nil when
// it does not exist.
func (w *Workload) PlannedAfter(old *Workload, version string, at time.Time) {
	w.ResourceVersion, w.Target.ResourceVersion = version, version
	how := mirror.Arrival{Watched: true, At: at}
	if old == nil {
		w.Status.Observed = true
		w.First(how)
		return
	}
	if w.templateSum != old.templateSum {
		w.Target.Generation = old.Target.Generation + 1
		w.Status.Observed = true
		w.planRevision()
	}
	w.Follow(old, how)
}

// planRevision sets a new revision, unless the workload is paused: its controller then doesn't
// make one.
func (w *Workload) planRevision() {
	if w.Status.Paused {
		return
	}
	if w.Revision > 0 {
		w.Revision++
	}
	if w.Status.UpdateRevision != "" {
		w.Status.UpdateRevision = plannedName
	}
	w.Status.PodHash, w.Status.Aborted = plannedName, false
}

// ByTemplate returns the workload for finding the revision of new pods. For a planned workload
// the status doesn't name the revision, so only the template can identify it.
func (w *Workload) ByTemplate() *Workload {
	if w.Status.UpdateRevision != plannedName {
		return w
	}
	copied := *w
	copied.Status.UpdateRevision = ""
	return &copied
}

// SameTemplate reports whether pods are made from the same template.
func (w *Workload) SameTemplate(other *Workload) bool {
	return w.templateSum == other.templateSum
}

// PlannedAfter turns a planned source into its state after the watch reports it. Old is the
// current source, nil when it does not exist.
func (s *Source) PlannedAfter(old *Source, version string, at time.Time) {
	s.ResourceVersion = version
	how := mirror.Arrival{Watched: true, At: at}
	if old == nil {
		s.First(how)
		return
	}
	s.Follow(old, how)
}

// PlannedAfter does the same for a planned namespace.
func (n *Namespace) PlannedAfter(old *Namespace, version string) {
	n.ResourceVersion = version
	how := mirror.Arrival{Watched: true}
	if old == nil {
		n.First(how)
		return
	}
	n.Follow(old, how)
}
