package kube

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// plannedName stands for the revision that a planned template would get.
const plannedName = "planned"

// PlannedAfter makes of a workload that is only planned what it would be after the API
// server has taken it, at that version, and its controller has acted on it. Old is what it
// is now, nil when it does not exist.
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

// planRevision gives the workload a new revision, unless it is paused: then its controller
// makes none.
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

// ByTemplate is the workload for who asks which revision new pods would be made from: of a
// planned one the status does not tell, and only the template does.
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

// PlannedAfter makes of a source that is only planned what the watch would make of it. Old
// is what it is now, nil when it does not exist.
func (s *Source) PlannedAfter(old *Source, version string, at time.Time) {
	s.ResourceVersion = version
	how := mirror.Arrival{Watched: true, At: at}
	if old == nil {
		s.First(how)
		return
	}
	s.Follow(old, how)
}

// PlannedAfter does so for a namespace.
func (n *Namespace) PlannedAfter(old *Namespace, version string) {
	n.ResourceVersion = version
	how := mirror.Arrival{Watched: true}
	if old == nil {
		n.First(how)
		return
	}
	n.Follow(old, how)
}
