package kube

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Workload is the part that Lockstep keeps of an object with a pod template. Readers share it,
// so it never changes after it was stored.
type Workload struct {
	Identity
	// Annotations are only the workload's settings for Lockstep.
	Annotations map[string]string
	// AskedAt is when the annotation that enables Lockstep was last written, by the API server's
	// clock; zero without the annotation, or when the managed fields don't show it.
	AskedAt time.Time
	// Selector finds the workload's revisions.
	Selector *metav1.LabelSelector
	// Replicas is the desired number of pods, zero when the kind doesn't specify it.
	Replicas int
	// Revision is the revision number that the workload's controller stores on the object, zero
	// for kinds without one.
	Revision int64
	// Status is the progress of its controller.
	Status Progress
	// Borrows is the workload whose template this one uses instead of its own, as a Rollout with
	// a workloadRef does; the zero Key for most.
	Borrows Key
	// Excess says that the workload is too large to be kept, empty for most. It has no
	// Selector, References and Images then.
	Excess string
	// Problem says why the object has no pod template, empty when it has one.
	Problem string
	PodTemplate
	TemplateObject
	WorkloadHistory
}

// Identity distinguishes the object from others, and from other versions of itself.
type Identity struct {
	Key             Key
	Kind            Kind
	UID             string
	ResourceVersion string
	Created         time.Time
	Deleting        bool
	// Owner is the object that controls the workload, empty for most: "Postgres/db".
	Owner string
}

// PodTemplate is the part of a pod template that Lockstep keeps.
type PodTemplate struct {
	// Metadata is how much metadata the template has.
	Metadata patch.Metadata
	// Containers of the template, in order.
	Containers []Container
	// Images of its containers and init containers, and its pull settings.
	Images []ContainerImage
	Pull   PullSettings
	// Refs are the sources that the template references. When they are more than a workload can
	// follow, there are those that the annotation lists, and others up to one beyond the bound.
	Refs []podrefs.Ref
	// Keeps are all the sources that pods of the template need, for a workload that is its own
	// revision; nil for the others.
	Keeps []input.ID
	// Shown are the versions that the template shows.
	Shown input.Shown
	// Annotated is true when the template has Lockstep's annotation.
	Annotated bool

	templateSum [sha256.Size]byte
}

// TemplateObject is the object that has the pod template: the workload itself, or its lender.
// The times are by the API server's clock.
type TemplateObject struct {
	Target Target
	// RolledOutAt is the time of the Lockstep patch that wrote the versions in the template,
	// zero when another writer did.
	RolledOutAt time.Time
	// TemplateAt is the latest time of a template write in the managed fields, and TemplateBy
	// its field manager; a removal from the template may leave none.
	TemplateAt time.Time
	TemplateBy string
	// RolledOutBy is the installation that last rolled it out, empty when none is noted.
	RolledOutBy string
	// HasAnnotations is true when the object has annotations.
	HasAnnotations bool
	// WrittenAt is the time of the last write of any kind to the object.
	WrittenAt time.Time
}

// WorkloadHistory is what only a comparison with earlier copies of the workload shows.
type WorkloadHistory struct {
	// TemplateWritten bounds the last write that made pods start from another template: a
	// change of the template, or the end of the pause in which it was changed.
	TemplateWritten timeline.Bounds
	// SettingsWritten bounds the last change of Annotations.
	SettingsWritten timeline.Bounds
	// Listed bounds the list that the workload came with, zero when the watch saw its creation.
	Listed timeline.Bounds
	// Replaced identifies the revisions that the workload had before it took up its template, as
	// the watch saw.
	Replaced timeline.Origin
	// OlderPods is true when pods of an earlier template may still have run when the workload
	// took up this one. If this template equals theirs, these pods keep running.
	OlderPods bool
	// StateSince is the arrival time of the first copy of this template with the present state
	// of health, and ProgressedAt that of the last one in which more pods were updated or
	// available than in any before. Both are zero in a command, which reads one copy.
	StateSince, ProgressedAt time.Time

	// reached is how far the rollout of the template has come.
	reached reach
	// left is the abort of an earlier template that the status may still show, nil without one.
	left *abort
	// templateChanged bounds the last change of the pod template, even during a pause.
	templateChanged timeline.Bounds
	// rolledSum is the digest of the template that the workload had when it was last not paused,
	// zero when unknown; unrolled identifies the revisions that it had before another template
	// was written since.
	rolledSum [sha256.Size]byte
	unrolled  timeline.Origin
}

// Target is an object that can be patched, as it was when it was read.
type Target struct {
	Kind            Kind
	Name            string
	UID             string
	ResourceVersion string
	Generation      int64
}

// Resolved returns the workload with the template that its pods are made from: its own or its
// lender's. find returns the lender as stored in the API server.
func (w *Workload) Resolved(find func(Key) (*Workload, bool)) *Workload {
	if w.Borrows == (Key{}) {
		return w
	}
	lender, ok := find(w.Borrows)
	if !ok {
		return w.withoutLender()
	}
	return w.borrowing(lender)
}

// borrowing returns the workload with another one's template.
func (w *Workload) borrowing(lender *Workload) *Workload {
	joined := *w
	joined.PodTemplate, joined.TemplateObject = lender.PodTemplate, lender.TemplateObject
	// The lender's pause doesn't affect workloads that use its template.
	joined.TemplateWritten, joined.rolledSum = lender.templateChanged, lender.templateSum
	// The lender's own revisions don't apply to this workload.
	joined.Replaced = ""
	// The workload's own copies don't show whether the last rollout had ended when the lender's template changed.
	joined.OlderPods = true
	if w.Status.BorrowedGeneration != lender.Target.Generation { // its status is about another template, or about a lender of before
		joined.Status.Observed, joined.reached = false, reach{}
		if lender.ProgressedAt.After(w.ProgressedAt) {
			joined.ProgressedAt = lender.ProgressedAt
		}
	}
	if joined.Selector == nil {
		joined.Selector = lender.Selector
	}
	return &joined
}

// withoutLender returns the workload while its lender does not exist. That isn't the same as a
// template without sources: the record keeps the delivered versions.
func (w *Workload) withoutLender() *Workload {
	alone := *w
	alone.Problem = fmt.Sprintf("%s, whose template it uses, does not exist, or its kind is not followed", w.Borrows)
	return &alone
}

// GetObjectMeta lets client-go's stores find the workload's name.
func (w *Workload) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: w.Key.Namespace, Name: w.Key.Name, ResourceVersion: w.ResourceVersion}
}

// Reference is the workload's object reference for events.
func (w *Workload) Reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: w.Kind.GroupVersion().String(), Kind: w.Key.Kind, Namespace: w.Key.Namespace, Name: w.Key.Name,
		UID: types.UID(w.UID), ResourceVersion: w.ResourceVersion,
	}
}

// Follow carries over the history that only a comparison with the earlier copy shows.
func (w *Workload) Follow(old *Workload, how mirror.Arrival) {
	if w.UID != old.UID {
		w.First(how)
		return
	}
	w.WorkloadHistory = old.WorkloadHistory
	w.leaveAbort(old)
	w.takeUpTemplate(old, how)
	w.followProgress(old, how)
	if !maps.Equal(w.Annotations, old.Annotations) {
		w.SettingsWritten = timeline.WrittenBetween(old.ResourceVersion, w.ResourceVersion, how.Watched)
	}
}

// First sets the bounds for an object without an earlier copy.
func (w *Workload) First(how mirror.Arrival) {
	written, listed := timeline.WrittenUpTo(w.ResourceVersion), timeline.WrittenUpTo(how.ListVersion)
	if how.Watched {
		written, listed = timeline.WrittenBetween("", w.ResourceVersion, true), timeline.Bounds{}
	}
	w.TemplateWritten, w.SettingsWritten, w.Listed = written, written, listed
	w.templateChanged, w.rolledSum = written, w.templateSum
	w.firstProgress(how)
	if w.Status.Paused { // it doesn't start pods, and may have been changed during the pause
		w.TemplateWritten, w.rolledSum = timeline.WrittenUpTo(w.ResourceVersion), [sha256.Size]byte{}
	}
}

// SameAs reports whether two copies are equal in everything that matters to Lockstep. A template
// that its controller has acted on keeps its number, unless another one came and went.
func (w *Workload) SameAs(old *Workload) bool {
	return w.UID == old.UID && w.templateSum == old.templateSum && (w.Revision == old.Revision || !old.Status.Observed) && w.Deleting == old.Deleting &&
		w.Borrows == old.Borrows && w.Status.Aborted == old.Status.Aborted && w.Status.Paused == old.Status.Paused && maps.Equal(w.Annotations, old.Annotations)
}

// SameProgress reports whether the workload's controller hasn't written anything new: neither a
// status nor a revision number. After templates that came and went, a list may show a new number
// with the old status.
func (w *Workload) SameProgress(old *Workload) bool {
	return w.Status == old.Status && w.Revision == old.Revision
}

// SlimWorkload makes a Workload from an API object of the given kind.
func SlimWorkload(kind Kind, object any, words settings.Vocabulary) (*Workload, error) {
	m, err := kind.Read(object)
	if err != nil {
		return nil, err
	}
	w := &Workload{
		Identity: Identity{
			Key:             Key{GroupKind: kind.GroupKind(), Namespace: m.GetNamespace(), Name: m.GetName()},
			Kind:            kind,
			UID:             string(m.GetUID()),
			ResourceVersion: m.GetResourceVersion(),
			Created:         m.GetCreationTimestamp().Time,
			Deleting:        m.GetDeletionTimestamp() != nil,
		},
	}
	w.Target = Target{Kind: kind, Name: w.Key.Name, UID: w.UID, ResourceVersion: w.ResourceVersion, Generation: m.GetGeneration()}
	w.Status, w.Owner = kind.Status(m).cut(), ownerOf(m)
	if lender := kind.Lender(m); slices.Contains(kind.Lenders, lender.GroupKind) {
		w.Borrows = lender
	} else if lender != (Key{}) {
		w.Problem = fmt.Sprintf("%s names a %s, but only the template of a %s can be followed", kind.Reference, lender.Kind, kind.lenderNames())
	}
	template, err := kind.PodTemplate(m)
	if err != nil {
		w.Problem = fmt.Sprintf("%s isn't a pod template", kind.Template)
		template = &corev1.PodTemplateSpec{}
	}
	w.Annotations = settings.Limit(requests(kind, m, template, words))
	if w.templateSum, err = digestOf(template); err != nil {
		return nil, fmt.Errorf("digest %s of %s: %w", kind.Template, w.Key, err)
	}
	w.Selector, w.Replicas, w.Revision = kind.Selector(m), kind.Replicas(m), kind.RevisionNumber(m)
	w.Refs = podrefs.Extract(&template.Spec)
	if kind.Revisions.Transient {
		w.Keeps = podrefs.Named(&template.Spec)
	}
	w.Metadata, w.Containers = metadataOf(kind, m, template), containersOf(&template.Spec)
	w.Images, w.Pull = imagesOf(&template.Spec), pullSettingsOf(&template.Spec)
	w.Shown = ShownIn(template)
	_, w.Annotated = template.Annotations[settings.Inputs]
	w.RolledOutBy, w.HasAnnotations = Cut(m.GetAnnotations()[settings.RolledOutBy]), len(m.GetAnnotations()) > 0
	w.boundSources(words)
	w.bound()
	w.RolledOutAt, w.WrittenAt, w.AskedAt = RolledOutAt(m), writtenAt(m), askedAt(m)
	writer := TemplateWriter(m)
	w.TemplateAt, w.TemplateBy = writer.At, unique.Make(Cut(writer.Manager)).Value() // one copy for all workloads
	return w, nil
}

// ShownIn reads the versions that a pod template shows, in either form.
func ShownIn(template *corev1.PodTemplateSpec) input.Shown {
	return input.ParseShown(TextIn(template))
}

// TextIn is the text in a pod template that shows the versions.
func TextIn(template *corev1.PodTemplateSpec) string {
	if text := template.Annotations[settings.Inputs]; len(input.ParseShown(text)) > 0 {
		return text
	}
	return textInEnvironment(containersOf(&template.Spec))
}

// RolledOutAt is when Lockstep wrote the versions that the template shows. Another writer of a
// field takes it over in the managed fields; Lockstep may still own the fields around it.
func RolledOutAt(m metav1.Object) time.Time {
	var latest time.Time
	for _, e := range m.GetManagedFields() {
		if e.Manager == FieldManager && e.Time != nil && e.FieldsV1 != nil && ownsVersions(e.FieldsV1.GetRawBytes()) && e.Time.After(latest) {
			latest = e.Time.Time
		}
	}
	return latest
}

// ownsVersions searches for the annotation, or for the value of the variable in
// "k:{\"name\":\"LOCKSTEP_INPUTS\"}":{".":{},"f:name":{},"f:value":{}}.
func ownsVersions(entry []byte) bool {
	if owns(entry, []string{`"f:` + settings.Inputs + `":`}) {
		return true
	}
	_, variable, _ := bytes.Cut(entry, []byte(settings.InputsVariable+`\"}":{`))
	variable, _, _ = bytes.Cut(variable, []byte("}}"))
	return owns(variable, []string{`"f:value":`})
}

// writtenAt is when any writer last wrote the object.
func writtenAt(m metav1.Object) time.Time {
	latest := m.GetCreationTimestamp().Time
	for _, e := range m.GetManagedFields() {
		if e.Time != nil && e.Time.After(latest) {
			latest = e.Time.Time
		}
	}
	return latest
}

// askedAt is the latest time of a managed fields entry that owns the annotation. The entry may
// have been written for another of its fields since, so the annotation is at least that old, and
// perhaps older.
func askedAt(m metav1.Object) time.Time {
	if _, asks := m.GetAnnotations()[settings.Reload]; !asks {
		return time.Time{}
	}
	return AnnotationWriter(m, settings.Reload).At
}

// requests are the workload's settings, those of other tools in our words.
func requests(kind Kind, m metav1.Object, template *corev1.PodTemplateSpec, words settings.Vocabulary) map[string]string {
	own := ownSettings(m, words)
	if translator, ok := words.(settings.Translator); ok {
		return translator.OfWorkload(kind.Kind, own, template.Annotations)
	}
	return own
}

// ownSettings keeps the annotations that Lockstep knows.
func ownSettings(m metav1.Object, words settings.Vocabulary) map[string]string {
	var own map[string]string
	for key, value := range m.GetAnnotations() {
		if !words.Knows(key, m.GetLabels()) {
			continue
		}
		if own == nil {
			own = map[string]string{}
		}
		own[key] = value
	}
	return own
}
