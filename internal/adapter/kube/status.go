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

// templateHashLabel is added to the template of a ReplicaSet by the Deployment
// controller.
const templateHashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// digestOf is a digest of a pod template, the same for that of a Deployment and that of
// its ReplicaSet.
func digestOf(template *corev1.PodTemplateSpec) ([sha256.Size]byte, error) {
	if _, hashed := template.Labels[templateHashLabel]; hashed {
		plain := *template
		plain.Labels = maps.Clone(template.Labels)
		delete(plain.Labels, templateHashLabel)
		template = &plain
	}
	text, err := template.Marshal() // the form of the wire: its maps are sorted, and it costs a fraction of JSON
	return sha256.Sum256(text), err
}

// HasTemplate reports whether the workload's pod template is this one, but for the hash
// that its controller adds.
func (w *Workload) HasTemplate(template *corev1.PodTemplateSpec) bool {
	sum, err := digestOf(template)
	return err == nil && sum == w.templateSum
}

// Template names what new pods are made from: the pod template, or what takes its place
// while a Rollout is aborted. Until its controller has acted, the number is that of an
// earlier one. Numbers only grow, so its own is not lower.
func (w *Workload) Template() record.Template {
	made := w.Revision > 0 && w.Status.Observed && !w.Status.Paused
	return record.Template{Generation: w.Target.Generation, Sum: w.name(w.templateSum), Number: w.Revision, Made: made}
}

// StartsFrom names the template that pods are made from, as far as the watch saw: during a
// pause, the one from before it.
func (w *Workload) StartsFrom() string {
	return w.name(w.rolledSum)
}

// IsUnrolled reports whether pods are made from another template than the workload has: it
// was changed during a pause, or may have been.
func (w *Workload) IsUnrolled() bool {
	return w.rolledSum != w.templateSum
}

func (w *Workload) name(sum [sha256.Size]byte) string {
	const enough = 8
	name := hex.EncodeToString(sum[:enough])
	if w.Status.Aborted {
		name += record.Instead + w.Status.StableHash
	}
	return name
}

// RolledOutSinceMade reports whether a patch of ours wrote what the template shows. Times are a
// second coarse, and none of ours is in a template that the workload was made with.
func (w *Workload) RolledOutSinceMade() bool {
	return !w.RolledOutAt.IsZero() && !w.RolledOutAt.Before(w.Created)
}

// Origin tells which revisions the workload has now, for what a write at that time
// gives it.
func (w *Workload) Origin(at time.Time) timeline.Origin {
	switch {
	case w.Revision > 0:
		return timeline.AfterNumber(w.Revision)
	case w.Status.UpdateRevision != "":
		return timeline.AfterName(w.Status.UpdateRevision)
	}
	return timeline.AfterTime(at)
}

// BeforeLast tells which revisions the workload had before its last one, as far as the
// workload itself tells.
func (w *Workload) BeforeLast() timeline.Origin {
	switch {
	case w.Revision > 0 && w.Status.Observed:
		return timeline.AfterNumber(w.Revision - 1)
	case w.Revision > 0:
		return timeline.AfterNumber(w.Revision)
	}
	return timeline.AfterTime(w.RolledOutAt)
}

// takeUpTemplate finds out since when pods start from the template. A pause postpones that,
// and a template that is changed and changed back during a pause starts no pod, whatever
// numbers its revisions were given meanwhile.
func (w *Workload) takeUpTemplate(old *Workload, how mirror.Arrival) {
	written := writtenSince(old.ResourceVersion, w.ResourceVersion, how)
	if w.templateSum != old.templateSum {
		w.templateChanged = written
	}
	known := old.rolledSum != [sha256.Size]byte{}
	edited := known && old.templateSum != old.rolledSum
	switch {
	case w.Status.Paused && !how.Watched && (w.templateSum != old.templateSum || w.Revision != old.Revision):
		// Before the pause, or during it. A number tells of another template that was between.
		w.rolledSum = [sha256.Size]byte{}
	case w.Status.Paused && w.templateSum != old.templateSum && !edited:
		w.unrolled = old.Origin(w.writeTime(how))
	case w.Status.Paused:
	case known && w.templateSum != old.rolledSum:
		w.replace(old, how, edited)
		w.OlderPods = !how.Watched || old.Status.HasOlderPods()
		if edited {
			// The status is already about this template, and older pods are those of another one.
			w.OlderPods = !how.Watched || old.Status.HasUpdatedPods()
		}
		fallthrough
	case w.isResumed(old):
		// Its pods start from now on, so they read what exists now.
		w.TemplateWritten = written
	}
	if !w.Status.Paused {
		w.rolledSum = w.templateSum
	}
}

// replace notes which revisions the workload had before it took up its template. Of a
// template that its controller has not acted on there is none.
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

// writeTime is the API server's time of the write that led to this copy, where the copy is
// that write itself.
func (w *Workload) writeTime(how mirror.Arrival) time.Time {
	if !how.Watched {
		return time.Time{}
	}
	return w.WrittenAt
}

// HasRevision reports whether a revision was made of the pod template, or may still be.
// None is made while the workload is paused, nor of a template that was changed and changed
// back before its controller acted. Of a template that no watch saw being written nothing
// is known.
func (w *Workload) HasRevision() bool {
	if w.Replaced == "" || w.Revision == 0 && w.Status.UpdateRevision == "" || w.Origin(time.Time{}) != w.Replaced {
		return true
	}
	return !w.Status.Observed && !w.Status.Paused
}

// isResumed reports whether this write lets the controller make a revision of a template
// that it had not acted on before the pause.
func (w *Workload) isResumed(old *Workload) bool {
	return old.Status.Paused && !w.Status.Paused && !old.HasRevision()
}

// ownerOf names the object that controls a workload: "Postgres/db".
func ownerOf(m metav1.Object) string {
	owner := metav1.GetControllerOf(m)
	if owner == nil {
		return ""
	}
	return owner.Kind + "/" + owner.Name
}

// RolledOut is what the API server says of a patch of ours.
type RolledOut struct {
	// At is its time of the write.
	At time.Time
	// Template is the pod template that the patch led to.
	Template record.Template
}
