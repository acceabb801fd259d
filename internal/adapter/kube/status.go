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
// while a Rollout is aborted.
func (w *Workload) Template() record.Template {
	const enough = 8
	t := record.Template{Generation: w.Target.Generation, Sum: hex.EncodeToString(w.templateSum[:enough])}
	if w.Status.Aborted {
		t.Sum += "!" + w.Status.StableHash
	}
	return t
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
	return timeline.AfterTime(w.MovedAt)
}

// replaced tells which revisions the workload had before it took up its template. Of a
// template that its controller has not acted on there is none.
func (w *Workload) replaced(old *Workload, how mirror.Arrival) timeline.Origin {
	if !old.Status.Observed {
		return old.Replaced
	}
	var at time.Time
	if how.Watched { // then this copy is the write itself
		at = w.WrittenAt
	}
	return old.Origin(at)
}

// HasRevision reports whether a revision was made of the pod template, or may still be.
// None is made while the workload is paused, nor of a template that was changed and
// changed back before its controller acted. Of a template that no watch saw being
// written nothing is known.
func (w *Workload) HasRevision() bool {
	if w.Replaced == "" || w.Revision == 0 && w.Status.UpdateRevision == "" || w.Origin(time.Time{}) != w.Replaced {
		return true
	}
	return !w.Status.Observed && !w.Status.Paused
}

// isResumed reports whether this write lets the controller make a revision of a template
// that was changed during a pause.
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

// Moved is what the API server says of a patch of ours.
type Moved struct {
	// At is its time of the write.
	At time.Time
	// Template is the pod template that the patch led to.
	Template record.Template
}
