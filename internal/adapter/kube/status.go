package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Status is what is kept of what a workload's controller has made of it.
type Status struct {
	// Observed is true when the controller has acted on the workload as it is now. A
	// kind that does not tell is taken to have.
	Observed bool
	// Paused is true when the controller is told to start no rollout.
	Paused bool
	// UpdateRevision is the revision that new pods of a StatefulSet are made from.
	UpdateRevision string
	// PodHash is that of the ReplicaSet of a Rollout's template, StableHash that of the
	// one that was last rolled out as a whole.
	PodHash, StableHash string
	// Aborted is true for a Rollout that was aborted: pods are made from the stable
	// ReplicaSet.
	Aborted bool
	// BorrowedGeneration is the generation of the workload whose template this one
	// uses, as far as its controller has acted on it.
	BorrowedGeneration int64
}

func statusOf(object any) Status {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return Status{Observed: o.Status.ObservedGeneration >= o.Generation, Paused: o.Spec.Paused}
	case *appsv1.StatefulSet:
		return Status{Observed: o.Status.ObservedGeneration >= o.Generation, UpdateRevision: o.Status.UpdateRevision}
	case *appsv1.DaemonSet:
		return Status{Observed: o.Status.ObservedGeneration >= o.Generation}
	case *unstructured.Unstructured:
		return customStatus(o)
	}
	return Status{Observed: true}
}

// customStatus reads the status of a kind that Go does not know. Argo Rollouts stores
// generations as text.
func customStatus(o *unstructured.Unstructured) Status {
	var s Status
	fields, _, _ := unstructured.NestedMap(o.Object, "status")
	observed, tells := generationIn(fields, "observedGeneration")
	s.Observed = !tells || observed >= o.GetGeneration()
	s.BorrowedGeneration, _ = generationIn(fields, "workloadObservedGeneration")
	s.UpdateRevision, _ = fields["updateRevision"].(string)
	if o.GroupVersionKind().GroupKind() == Rollout().GroupKind() {
		s.Observed = s.Observed && tells
		s.Paused, _, _ = unstructured.NestedBool(o.Object, "spec", "paused")
		s.PodHash, _ = fields["currentPodHash"].(string)
		s.StableHash, _ = fields["stableRS"].(string)
		s.Aborted, _ = fields["abort"].(bool)
	}
	return s
}

func generationIn(status map[string]any, field string) (generation int64, tells bool) {
	switch value := status[field].(type) {
	case int64:
		return value, true
	case string:
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil
	}
	return 0, false
}

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
	text, err := json.Marshal(template)
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
