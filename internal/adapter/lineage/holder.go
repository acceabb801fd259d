package lineage

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
)

// Holder is something that pods are made from as long as it exists, and that
// therefore must keep its configuration: a ReplicaSet, a ControllerRevision, a
// CronJob or a Job. It is never changed after it was made.
type Holder struct {
	GVK             schema.GroupVersionKind
	Namespace       string
	Name            string
	UID             string
	ResourceVersion string
	// ControllerUID is that of the workload which made the holder, empty when none
	// did that outlives it; a CronJob holds for itself.
	ControllerUID string
	// Uses are the sources that the pod template names, sorted.
	Uses []input.ID
	// Over is true for a holder that is being deleted and for a Job that has
	// finished: no pod will be made from it.
	Over bool
}

// String is how people name it: "ReplicaSet/web-6f4d".
func (h *Holder) String() string {
	return h.GVK.Kind + "/" + h.Name
}

// UsesSource reports whether the holder's pod template names the source.
func (h *Holder) UsesSource(s input.ID) bool {
	return slices.Contains(h.Uses, s)
}

// Holds reports whether the holder is a living revision of some workload. What
// nobody controls comes and goes by hand, and must not take objects with it.
func (h *Holder) Holds() bool {
	return !h.Over && h.ControllerUID != ""
}

// OwnerReference makes the holder an owner like any other: not the controller,
// and no obstacle to its own deletion.
func (h *Holder) OwnerReference() metav1.OwnerReference {
	apiVersion, kind := h.GVK.ToAPIVersionAndKind()
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: h.Name, UID: types.UID(h.UID)}
}

// GetObjectMeta lets client-go's stores find the holder's name.
func (h *Holder) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name, ResourceVersion: h.ResourceVersion}
}

// SameAs reports whether the difference between two copies can matter to anyone.
func (h *Holder) SameAs(old *Holder) bool {
	return h.UID == old.UID && h.Over == old.Over && h.ControllerUID == old.ControllerUID && slices.Equal(h.Uses, old.Uses)
}

// slimHolder makes a Holder of an API object.
func slimHolder(object any) (*Holder, error) {
	switch o := object.(type) {
	case *appsv1.ReplicaSet:
		return newHolder(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), o, &o.Spec.Template.Spec), nil
	case *appsv1.ControllerRevision:
		template, err := revisionTemplate(o)
		if err != nil {
			return nil, err
		}
		return newHolder(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), o, &template.Spec), nil
	case *batchv1.CronJob:
		h := newHolder(batchv1.SchemeGroupVersion.WithKind("CronJob"), o, &o.Spec.JobTemplate.Spec.Template.Spec)
		h.ControllerUID = h.UID
		return h, nil
	case *batchv1.Job:
		h := newHolder(batchv1.SchemeGroupVersion.WithKind("Job"), o, &o.Spec.Template.Spec)
		h.Over = h.Over || finished(o)
		if !ofCronJob(o) {
			h.ControllerUID = ""
		}
		return h, nil
	}
	return nil, fmt.Errorf("unexpected type %T", object)
}

func newHolder(gvk schema.GroupVersionKind, o client.Object, spec *corev1.PodSpec) *Holder {
	h := &Holder{
		GVK: gvk, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()),
		ResourceVersion: o.GetResourceVersion(),
		Over:            o.GetDeletionTimestamp() != nil,
	}
	if owner := metav1.GetControllerOf(o); owner != nil {
		h.ControllerUID = string(owner.UID)
	}
	h.Uses = podrefs.Named(spec)
	return h
}

// ofCronJob reports whether a CronJob made the Job. Only a CronJob is a holder
// itself, and keeps the object for its next Job when this one goes.
func ofCronJob(job *batchv1.Job) bool {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.Kind != "CronJob" {
		return false
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && version.Group == batchv1.GroupName
}

func finished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}
