package lineage

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// Labels and annotations that Argo Rollouts writes.
const (
	rolloutHashLabel           = "rollouts-pod-template-hash"
	rolloutWorkloadGeneration  = "rollout.argoproj.io/workload-generation"
	deploymentHashLabel        = "pod-template-hash"
	rolloutGroup, rolloutLevel = "argoproj.io", "v1alpha1"
)

// AttachableKinds are the kinds of workloads whose revisions can own objects, by
// the names that people type, which are those of kubectl.
func AttachableKinds() map[string]schema.GroupVersionKind {
	rollout := schema.GroupVersionKind{Group: rolloutGroup, Version: rolloutLevel, Kind: "Rollout"}
	deployment := appsv1.SchemeGroupVersion.WithKind("Deployment")
	statefulSet := appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	daemonSet := appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	cronJob := batchv1.SchemeGroupVersion.WithKind("CronJob")
	return map[string]schema.GroupVersionKind{
		"rollout": rollout, "ro": rollout,
		"deployment": deployment, "deploy": deployment,
		"statefulset": statefulSet, "sts": statefulSet,
		"daemonset": daemonSet, "ds": daemonSet,
		"cronjob": cronJob, "cj": cronJob,
	}
}

func namespaceKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("Namespace")
}

// facts are what a workload tells about its revisions.
type facts struct {
	observed bool
	paused   bool
	// selector finds the revisions; their controller decides which are its own.
	selector labels.Selector
	// holdsItself is true for a workload that is its own revision.
	holdsItself bool
	// current picks the revision of the workload as it is now.
	current func(revisions []client.Object) client.Object
}

func newWorkloadObject(key kube.Key) (client.Object, error) {
	switch key.Kind {
	case "Deployment":
		return &appsv1.Deployment{}, nil
	case "StatefulSet":
		return &appsv1.StatefulSet{}, nil
	case "DaemonSet":
		return &appsv1.DaemonSet{}, nil
	case "CronJob":
		return &batchv1.CronJob{}, nil
	case "Rollout":
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: rolloutGroup, Version: rolloutLevel, Kind: "Rollout"})
		return o, nil
	}
	return nil, fmt.Errorf("the revisions of kind %s are not known", key.Kind)
}

func readFacts(object client.Object) (facts, error) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return withSelector(o.Spec.Selector, facts{
			observed: o.Status.ObservedGeneration >= o.Generation, paused: o.Spec.Paused,
			current: func(all []client.Object) client.Object { return sameTemplate(all, &o.Spec.Template) },
		})
	case *appsv1.StatefulSet:
		return withSelector(o.Spec.Selector, facts{
			observed: o.Status.ObservedGeneration >= o.Generation,
			current:  func(all []client.Object) client.Object { return named(all, o.Status.UpdateRevision) },
		})
	case *appsv1.DaemonSet:
		return withSelector(o.Spec.Selector, facts{
			observed: o.Status.ObservedGeneration >= o.Generation,
			current:  func(all []client.Object) client.Object { return newestRevision(all, &o.Spec.Template) },
		})
	case *batchv1.CronJob:
		// A CronJob's Jobs have only such labels as its template gives them.
		return facts{
			observed: true, holdsItself: true, selector: labels.Everything(),
			current: func([]client.Object) client.Object { return o },
		}, nil
	case *unstructured.Unstructured:
		return rolloutFacts(o)
	}
	return facts{}, fmt.Errorf("unexpected type %T", object)
}

func withSelector(s *metav1.LabelSelector, f facts) (facts, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return facts{}, fmt.Errorf("read the selector: %w", err)
	}
	f.selector = selector
	return f, nil
}

// rolloutFacts reads a Rollout of Argo.
func rolloutFacts(o *unstructured.Unstructured) (facts, error) {
	hash, _, _ := unstructured.NestedString(o.Object, "status", "currentPodHash")
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	f := facts{
		observed: rolloutObserved(o), paused: paused,
		current: func(all []client.Object) client.Object { return withHash(all, o.GetName(), hash) },
	}
	if s := kube.SelectorOf(o); s != nil {
		return withSelector(s, f)
	}
	// A Rollout that takes its template from a Deployment may have no selector of
	// its own; every ReplicaSet of a Rollout carries the hash.
	hashed, err := labels.NewRequirement(rolloutHashLabel, selection.Exists, nil)
	if err != nil {
		return facts{}, err
	}
	f.selector = labels.NewSelector().Add(*hashed)
	return f, nil
}

// rolloutObserved compares generations. Argo stores the observed one as text;
// what is no number, or a number from another life, was written by a controller
// so old that it compared nothing.
func rolloutObserved(o *unstructured.Unstructured) bool {
	text, _, _ := unstructured.NestedString(o.Object, "status", "observedGeneration")
	if text == "" {
		return false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n < o.GetGeneration() {
		return false
	}
	wanted, follows := o.GetAnnotations()[rolloutWorkloadGeneration]
	if !follows {
		return true
	}
	seen, _, _ := unstructured.NestedString(o.Object, "status", "workloadObservedGeneration")
	return seen == wanted
}

// sameTemplate finds the ReplicaSet of a Deployment's template as the Deployment
// controller does: everything but the hash is equal. The controller adds the hash,
// and overwrites one that came with the Deployment's template.
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

// withHash finds the ReplicaSet that carries the hash, or else the one whose name
// does: labels can be edited.
func withHash(all []client.Object, rollout, hash string) client.Object {
	if hash == "" {
		return nil
	}
	for _, o := range all {
		if o.GetLabels()[rolloutHashLabel] == hash {
			return o
		}
	}
	return named(all, rollout+"-"+hash)
}

func named(all []client.Object, name string) client.Object {
	i := slices.IndexFunc(all, func(o client.Object) bool { return o.GetName() == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// newestRevision finds the ControllerRevision of a DaemonSet's template. Workload
// and revisions are told by two watches, so the highest number that is known may
// still be that of the revision before.
func newestRevision(all []client.Object, template *corev1.PodTemplateSpec) client.Object {
	var newest *appsv1.ControllerRevision
	for _, o := range all {
		cr, ok := o.(*appsv1.ControllerRevision)
		if !ok {
			continue
		}
		if stored, err := revisionTemplate(cr); err != nil || !apiequality.Semantic.DeepEqual(stored, template) {
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
