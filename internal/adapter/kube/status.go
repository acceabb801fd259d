package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// templateHashLabel is added to a ReplicaSet's template by the Deployment controller.
const templateHashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// digestOf is a digest of a pod template, equal for a Deployment and its ReplicaSet.
func digestOf(template *corev1.PodTemplateSpec) ([sha256.Size]byte, error) {
	if _, hashed := template.Labels[templateHashLabel]; hashed {
		plain := *template
		plain.Labels = maps.Clone(template.Labels)
		delete(plain.Labels, templateHashLabel)
		template = &plain
	}
	text, err := template.Marshal() // the wire form sorts its maps and costs a fraction of JSON
	return sha256.Sum256(text), err
}

// HasTemplate reports whether the workload has this pod template, ignoring the hash that its
// controller adds.
func (w *Workload) HasTemplate(template *corev1.PodTemplateSpec) bool {
	sum, err := digestOf(template)
	return err == nil && sum == w.templateSum
}

// Template identifies the template of new pods: the pod template, or its replacement while a
// Rollout is aborted. Until the controller has acted, the number is that of an earlier template.
// Numbers only grow, so the template's own number won't be lower.
func (w *Workload) Template() record.Template {
	made := w.Revision > 0 && w.Status.Observed && !w.Status.Paused
	return record.Template{Generation: w.Target.Generation, Object: w.lender(), Sum: w.name(w.templateSum), Number: w.Revision, Made: made}
}

// lender is the beginning of the UID of the object that lends its template, empty for the workload's
// own.
func (w *Workload) lender() string {
	const enough = 8
	if w.Borrows == (Key{}) {
		return ""
	}
	return w.Target.UID[:min(enough, len(w.Target.UID))]
}

// StartsFrom identifies the template that pods start from, as far as the watch saw: during a
// pause, the one from before it.
func (w *Workload) StartsFrom() string {
	return w.name(w.rolledSum)
}

// IsUnrolled reports whether pods start from a different template than the workload shows: the
// template was changed during a pause, or may have been.
func (w *Workload) IsUnrolled() bool {
	return w.rolledSum != w.templateSum
}

// IsPausedUnseen reports whether a pause began before the workload was first seen, or in a gap: its template may have been
// rolled out before the pause.
func (w *Workload) IsPausedUnseen() bool {
	return w.Status.Paused && w.rolledSum == [sha256.Size]byte{}
}

func sumName(sum [sha256.Size]byte) string {
	const enough = 8
	return hex.EncodeToString(sum[:enough])
}

func (w *Workload) name(sum [sha256.Size]byte) string {
	name := sumName(sum)
	if w.Status.Aborted {
		name += record.Instead + w.Status.StableHash
	}
	return name
}

// RolledOutSinceMade reports whether a Lockstep patch wrote the versions that the template
// shows. Times have a resolution of one second. A template that came with the workload's
// creation doesn't contain a patch time of this workload.
func (w *Workload) RolledOutSinceMade() bool {
	return !w.RolledOutAt.IsZero() && !w.RolledOutAt.Before(w.Created)
}

// Origin identifies the workload's current revisions, as the starting point for what a write at
// that time creates.
func (w *Workload) Origin(at time.Time) timeline.Origin {
	switch {
	case w.Revision > 0:
		return timeline.AfterNumber(w.Revision)
	case w.Status.UpdateRevision != "":
		return timeline.AfterName(w.Status.UpdateRevision)
	}
	return timeline.AfterTime(at)
}

// BeforeLast identifies the revisions that the workload had before its last one, as far as the
// workload itself shows them.
func (w *Workload) BeforeLast() timeline.Origin {
	switch {
	case w.Revision > 0 && w.Status.Observed:
		return timeline.AfterNumber(w.Revision - 1)
	case w.Revision > 0:
		return timeline.AfterNumber(w.Revision)
	}
	return timeline.AfterTime(w.RolledOutAt)
}

// takeUpTemplate determines since when pods start from the template. A pause delays that. A
// template that is changed and reverted during a pause doesn't start pods, whatever revision
// numbers were assigned meanwhile.
func (w *Workload) takeUpTemplate(old *Workload, how mirror.Arrival) {
	written := writtenSince(old.ResourceVersion, w.ResourceVersion, how)
	if w.templateSum != old.templateSum {
		w.templateChanged = written
	}
	known := old.rolledSum != [sha256.Size]byte{}
	edited := known && old.templateSum != old.rolledSum
	switch {
	case w.Status.Paused && !how.Watched && (w.templateSum != old.templateSum || w.Revision != old.Revision):
		// Changed before or during the pause. A new number shows that there was another template
		// in between.
		w.rolledSum = [sha256.Size]byte{}
	case w.Status.Paused && w.templateSum != old.templateSum && !edited:
		w.unrolled = old.Origin(w.writeTime(how))
	case w.Status.Paused:
	case known && w.templateSum != old.rolledSum:
		w.replace(old, how, edited)
		missed := !how.Watched && !w.isNext(old)
		w.OlderPods = missed || old.Status.HasOlderPods()
		if edited {
			// The status already describes this template, and older pods belong to another one.
			w.OlderPods = missed || old.Status.HasUpdatedPods()
		}
		fallthrough
	case w.isResumed(old):
		// Its pods start from now on, so they read the current versions.
		w.TemplateWritten = written
	}
	if !w.Status.Paused {
		w.rolledSum = w.templateSum
	}
}

// isNext reports whether nothing else was rolled out between two copies with different templates.
func (w *Workload) isNext(old *Workload) bool {
	numbered := old.Revision > 0 && old.Status.Observed && w.Status.Observed
	return w.Target.Generation == old.Target.Generation+1 || numbered && w.Revision == old.Revision+1
}

// replace records which revisions the workload had before it took up its template. A template
// that its controller hasn't acted on doesn't have a revision.
func (w *Workload) replace(old *Workload, how mirror.Arrival, edited bool) {
	switch {
	case edited:
		w.Replaced = old.unrolled
	case old.Status.Observed:
		w.Replaced = old.Origin(w.writeTime(how))
	}
}

// HasTemplateSince reports whether the pod template was certainly written after that
// resource version of the workload.
func (w *Workload) HasTemplateSince(version int64) bool {
	return version >= 0 && w.templateChanged.Min > uint64(version)
}

// writeTime is the API server's time of the write that led to this copy, if the watch reported
// that write itself.
func (w *Workload) writeTime(how mirror.Arrival) time.Time {
	if !how.Watched {
		return time.Time{}
	}
	return w.WrittenAt
}

// HasRevision reports whether the controller made a revision of the pod template, or still may.
// It doesn't while the workload is paused, nor for a template that was changed and reverted
// before it acted. Nothing is known about a template whose write the watch didn't see.
func (w *Workload) HasRevision() bool {
	if w.Replaced == "" || w.Revision == 0 && w.Status.UpdateRevision == "" || w.Origin(time.Time{}) != w.Replaced {
		return true
	}
	return !w.Status.Observed && !w.Status.Paused
}

// isResumed reports whether this write lets the controller make a revision of a template that it
// had not acted on before the pause.
func (w *Workload) isResumed(old *Workload) bool {
	return old.Status.Paused && !w.Status.Paused && !old.HasRevision()
}

// ownerOf names the object that controls a workload: "Postgres/db".
func ownerOf(m metav1.Object) string {
	owner := ControllerOf(m)
	if owner == nil {
		return ""
	}
	return owner.Kind + "/" + owner.Name
}

// RolledOut is the API server's response to a Lockstep patch.
type RolledOut struct {
	// At is the API server's time of the write.
	At time.Time
	// Template is the pod template that the patch led to.
	Template record.Template
}
