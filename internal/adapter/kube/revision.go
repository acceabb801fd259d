package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Revisions describes the objects that a kind's controller makes from a pod template, and from
// which pods are made.
type Revisions struct {
	schema.GroupVersionKind
	// NewList returns an empty list of revisions.
	NewList func() client.ObjectList
	// TemplateOf reads a revision's pod template.
	TemplateOf func(client.Object) (*corev1.PodTemplateSpec, error)
	// EndedOf reports whether the revision won't create pods any more; nil means never.
	EndedOf func(client.Object) bool
	// Transient is true for revisions that come and go while the workload stays unchanged.
	// Between two of them only the workload keeps the objects that the next one needs, so the
	// workload is a revision too, and the current one. Their labels don't identify their
	// workload.
	Transient bool
}

// ReplicaSets are the revisions of Deployments, and of kinds like them.
func ReplicaSets() Revisions {
	return Revisions{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		NewList:          func() client.ObjectList { return &appsv1.ReplicaSetList{} },
		TemplateOf: func(o client.Object) (*corev1.PodTemplateSpec, error) {
			return &o.(*appsv1.ReplicaSet).Spec.Template, nil
		},
	}
}

// ControllerRevisions are the revisions of StatefulSets and DaemonSets, and of kinds
// like them.
func ControllerRevisions() Revisions {
	return Revisions{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
		NewList:          func() client.ObjectList { return &appsv1.ControllerRevisionList{} },
		TemplateOf:       storedTemplate,
	}
}

// Jobs are the revisions of CronJobs.
func Jobs() Revisions {
	return Revisions{
		GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"),
		NewList:          func() client.ObjectList { return &batchv1.JobList{} },
		TemplateOf:       func(o client.Object) (*corev1.PodTemplateSpec, error) { return &o.(*batchv1.Job).Spec.Template, nil },
		EndedOf:          hasFinished,
		Transient:        true,
	}
}

func hasFinished(o client.Object) bool {
	return slices.ContainsFunc(o.(*batchv1.Job).Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}

// storedTemplate reads the template out of the patch that a ControllerRevision stores.
func storedTemplate(o client.Object) (*corev1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(o.(*appsv1.ControllerRevision).Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("read the template of controllerrevision/%s in namespace %s: %w", o.GetName(), o.GetNamespace(), err)
	}
	return &data.Spec.Template, nil
}

// RevisionSelector finds candidate revisions of a workload; their controller reference decides
// which are its own.
func (k Kind) RevisionSelector(o client.Object) (labels.Selector, error) {
	if k.Revisions.Transient {
		return labels.Everything(), nil
	}
	s := k.Selector(o)
	if s == nil && k.RevisionLabel != "" {
		labelled, err := labels.NewRequirement(k.RevisionLabel, selection.Exists, nil)
		if err != nil {
			return nil, err
		}
		return labels.NewSelector().Add(*labelled), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, fmt.Errorf("read the selector: %w", err)
	}
	return selector, nil
}

// deploymentHashLabel is added to a template by the Deployment controller.
const deploymentHashLabel = "pod-template-hash"

// RevisionHashLabels are the labels that controllers add to the template of a revision.
func RevisionHashLabels() []string {
	return []string{deploymentHashLabel, rolloutHashLabel}
}

// sameTemplate finds the ReplicaSet of a Deployment's template as the Deployment controller
// does: everything but the hash is equal. The controller adds the hash, and overwrites one in
// the Deployment's template.
func sameTemplate(all []client.Object, template *corev1.PodTemplateSpec) client.Object {
	wanted := withoutHash(template)
	for _, o := range all {
		if rs, ok := o.(*appsv1.ReplicaSet); ok && apiequality.Semantic.DeepEqual(withoutHash(&rs.Spec.Template), wanted) {
			return rs
		}
	}
	return nil
}

func withoutHash(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	template = template.DeepCopy()
	delete(template.Labels, deploymentHashLabel)
	return template
}

func named(all []client.Object, name string) client.Object {
	i := slices.IndexFunc(all, func(o client.Object) bool { return o.GetName() == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// newestWithTemplate finds the ControllerRevision of a DaemonSet's template. Two separate
// watches report workload and revisions, so the highest known number may still be the previous
// revision's.
func newestWithTemplate(all []client.Object, template *corev1.PodTemplateSpec) client.Object {
	var newest *appsv1.ControllerRevision
	for _, o := range all {
		cr, ok := o.(*appsv1.ControllerRevision)
		if !ok {
			continue
		}
		if stored, err := storedTemplate(cr); err != nil || !apiequality.Semantic.DeepEqual(stored, template) {
			continue
		}
		if newest == nil || cr.Revision > newest.Revision {
			newest = cr
		}
	}
	if newest == nil {
		return nil
	}
	return newest
}

// AskPast returns the past of one workload, as far as that evidence shows it. It queries the API
// server once per decision.
type AskPast func(context.Context, timeline.Evidence) (timeline.Past, error)
