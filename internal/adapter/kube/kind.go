package kube

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/health"
)

// Row is everything that Lockstep knows about a kind of workload. Omitted fields have defaults
// that suit a custom resource with a pod template: it is read without Go types, from the fields
// that most kinds have.
type Row struct {
	schema.GroupVersionKind
	// Template is the path of the pod template, for example "spec.template".
	Template string
	// ShortNames are kubectl's.
	ShortNames []string
	// Custom is true for a kind that a user configured. Its name includes the group, which
	// distinguishes it from a built-in kind of the same name, and Lockstep does not know which
	// controller makes its pods.
	Custom bool

	// Typed reads a kind that has a Go type, and is zero for the others.
	Typed Typed

	// RestartsByItself is true for a kind that keeps starting new pods, which read new content
	// without a rollout.
	RestartsByItself bool
	// Reference is the path of the reference to an object whose template the workload uses
	// instead of its own, and Lenders are the kinds that it may name.
	Reference string
	Lenders   []schema.GroupKind

	// Revisions describes the objects that the workload's controller makes from its template.
	Revisions Revisions
	// RevisionNumbers are the annotations that may hold the number of a revision, on the
	// workload and on the revision.
	RevisionNumbers []string
	// RevisionLabel is on every revision. It finds them where the workload has no
	// selector.
	RevisionLabel string
	// CurrentOf picks the current revision of the workload, nil while there is none. Without it,
	// objects cannot be attached to the kind's revisions.
	CurrentOf func(workload client.Object, revisions []client.Object) client.Object
	// StatusOf reads the progress of the workload's controller.
	StatusOf func(client.Object) Progress
}

// Typed makes and reads objects of a Go type.
type Typed struct {
	// Object and List make empty objects. They are transferred as protobuf, which decodes
	// several times faster. The readers below get this type.
	Object func() client.Object
	List   func() client.ObjectList
	// Template, Selector and Replicas read an object; the selector may be nil for a kind that
	// doesn't have one.
	Template func(client.Object) *corev1.PodTemplateSpec
	Selector func(client.Object) *metav1.LabelSelector
	Replicas func(client.Object) int
}

// Progress is how far a workload's controller has progressed.
type Progress struct {
	health.Status
	// UpdateRevision is the revision that new pods are made from, if the status names it.
	UpdateRevision string
	// PodHash is the hash of the template's ReplicaSet, and StableHash that of the last
	// ReplicaSet that was fully rolled out, for a kind that identifies revisions by hash. While
	// a Rollout is aborted, pods are made from the stable one.
	PodHash, StableHash string
	// BorrowedGeneration is the lender's generation that the controller last acted on.
	BorrowedGeneration int64
}

// Kind is a kind of workload: a shared row. Kinds are compared by their GroupKind.
type Kind struct {
	// Comparing rows by address is a mistake that must not compile. The field comes first
	// because at the end it would cost memory.
	_ [0]func()
	*Row
}

// NewKind makes a kind from its row.
func NewKind(r Row) Kind {
	return Kind{Row: &r}
}

// Kinds returns the kinds that are followed by default.
func Kinds() []Kind {
	return []Kind{Deployment(), StatefulSet(), DaemonSet(), CronJob(), Rollout()}
}

// Off returns the kinds of Kinds that aren't among the followed ones.
func Off(followed []Kind) []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return HasKind(followed, k.GroupKind()) })
}

// HasKind reports whether one of the kinds is this one.
func HasKind(kinds []Kind, kind schema.GroupKind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return k.GroupKind() == kind })
}

// AllKinds are the kinds, plus those further kinds that aren't among them.
func AllKinds(kinds, further []Kind) []Kind {
	all := slices.Clone(kinds)
	for _, kind := range further {
		if !HasKind(all, kind.GroupKind()) {
			all = append(all, kind)
		}
	}
	return all
}

// Deployment is the kind of Deployments.
func Deployment() Kind {
	return NewKind(Row{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Template: "spec.template", ShortNames: []string{"deploy"},
		Typed: Typed{
			Object:   func() client.Object { return &appsv1.Deployment{} },
			List:     func() client.ObjectList { return &appsv1.DeploymentList{} },
			Template: of(func(o *appsv1.Deployment) *corev1.PodTemplateSpec { return &o.Spec.Template }),
			Selector: of(func(o *appsv1.Deployment) *metav1.LabelSelector { return o.Spec.Selector }),
			Replicas: of(func(o *appsv1.Deployment) int { return int(ptr.Deref(o.Spec.Replicas, 1)) }),
		},
		Revisions:       ReplicaSets(),
		RevisionNumbers: []string{deploymentRevision},
		CurrentOf: func(w client.Object, revisions []client.Object) client.Object {
			return sameTemplate(revisions, &w.(*appsv1.Deployment).Spec.Template)
		},
		StatusOf: of(deploymentStatus),
	})
}

// StatefulSet is the kind of StatefulSets.
func StatefulSet() Kind {
	return NewKind(Row{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Template: "spec.template", ShortNames: []string{"sts"},
		Typed: Typed{
			Object:   func() client.Object { return &appsv1.StatefulSet{} },
			List:     func() client.ObjectList { return &appsv1.StatefulSetList{} },
			Template: of(func(o *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &o.Spec.Template }),
			Selector: of(func(o *appsv1.StatefulSet) *metav1.LabelSelector { return o.Spec.Selector }),
			Replicas: of(func(o *appsv1.StatefulSet) int { return int(ptr.Deref(o.Spec.Replicas, 1)) }),
		},
		Revisions: ControllerRevisions(),
		CurrentOf: func(w client.Object, revisions []client.Object) client.Object {
			return named(revisions, w.(*appsv1.StatefulSet).Status.UpdateRevision)
		},
		StatusOf: of(statefulSetStatus),
	})
}

// DaemonSet is the kind of DaemonSets.
func DaemonSet() Kind {
	return NewKind(Row{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Template: "spec.template", ShortNames: []string{"ds"},
		Typed: Typed{
			Object:   func() client.Object { return &appsv1.DaemonSet{} },
			List:     func() client.ObjectList { return &appsv1.DaemonSetList{} },
			Template: of(func(o *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &o.Spec.Template }),
			Selector: of(func(o *appsv1.DaemonSet) *metav1.LabelSelector { return o.Spec.Selector }),
			Replicas: of(func(o *appsv1.DaemonSet) int { return int(o.Status.DesiredNumberScheduled) }),
		},
		Revisions: ControllerRevisions(),
		CurrentOf: func(w client.Object, revisions []client.Object) client.Object {
			return newestWithTemplate(revisions, &w.(*appsv1.DaemonSet).Spec.Template)
		},
		StatusOf: of(daemonSetStatus),
	})
}

// CronJob is the kind of CronJobs. A CronJob is its own current revision, because no other
// object exists between two of its Jobs.
func CronJob() Kind {
	return NewKind(Row{
		GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("CronJob"), Template: "spec.jobTemplate.spec.template", ShortNames: []string{"cj"},
		Typed: Typed{
			Object:   func() client.Object { return &batchv1.CronJob{} },
			List:     func() client.ObjectList { return &batchv1.CronJobList{} },
			Template: of(func(o *batchv1.CronJob) *corev1.PodTemplateSpec { return &o.Spec.JobTemplate.Spec.Template }),
			Selector: func(client.Object) *metav1.LabelSelector { return nil },
			Replicas: func(client.Object) int { return 0 },
		},
		RestartsByItself: true,
		Revisions:        Jobs(),
		CurrentOf:        func(w client.Object, _ []client.Object) client.Object { return w },
		StatusOf:         func(client.Object) Progress { return Progress{Status: health.Status{Observed: true}} },
	})
}

// Rollout is the kind of Argo Rollouts.
func Rollout() Kind {
	return NewKind(Row{
		GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"},
		Template:         "spec.template", ShortNames: []string{"ro"},
		Reference: "spec.workloadRef", Lenders: []schema.GroupKind{{Group: appsv1.GroupName, Kind: "Deployment"}},
		Revisions: ReplicaSets(), RevisionNumbers: []string{rolloutRevision}, RevisionLabel: rolloutHashLabel,
		CurrentOf: rolloutCurrent, StatusOf: rolloutStatus,
	})
}

// customKind is a kind of which Lockstep knows only the names and the template path.
func customKind(gvk schema.GroupVersionKind, template string) Kind {
	r := Row{
		GroupVersionKind: gvk, Template: template, Custom: true,
		Revisions: ReplicaSets(), RevisionNumbers: []string{deploymentRevision, rolloutRevision},
	}
	// An operator that reuses such a kind's name uses ControllerRevisions too.
	if gvk.Kind == "StatefulSet" || gvk.Kind == "DaemonSet" {
		r.Revisions = ControllerRevisions()
	}
	return NewKind(r)
}

// Annotations in which controllers store a revision's number. A revision that is used again gets
// a new number.
const (
	deploymentRevision = "deployment.kubernetes.io/revision"
	rolloutRevision    = "rollout.argoproj.io/revision"
)

// of adapts a reader of one type to any object.
func of[T client.Object, R any](read func(T) R) func(client.Object) R {
	return func(o client.Object) R { return read(o.(T)) }
}
