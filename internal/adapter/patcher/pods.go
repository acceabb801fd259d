package patcher

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Pods works on the pods of workloads. It queries the API server each time: there are many pods,
// and only few workloads are configured to roll out this way.
type Pods struct {
	client client.Client
}

// NewPods makes a Pods that works through the client.
func NewPods(c client.Client) *Pods {
	return &Pods{client: c}
}

// List returns the workload's pods that have not finished: those that its selector matches and
// that it controls, itself or through its revisions. Selectors overlap, and a bare pod may have
// the same labels.
func (p *Pods) List(ctx context.Context, w *kube.Workload) ([]pods.Pod, error) {
	selector, err := podSelector(w)
	if err != nil {
		return nil, err
	}
	type controlled struct {
		pods.Pod
		by *metav1.OwnerReference
	}
	var found []controlled
	err = pages.Each(ctx, p.client, &corev1.PodList{}, func(o client.Object) bool {
		pod := o.(*corev1.Pod)
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			found = append(found, controlled{newPod(pod), kube.ControllerOf(pod)})
		}
		return true
	}, client.InNamespace(w.Key.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", w.Key, err)
	}
	owners := newOwners(p.client, w)
	var own []pods.Pod
	for _, pod := range found {
		leads, err := owners.lead(ctx, pod.by)
		if err != nil {
			return nil, fmt.Errorf("find the controller of pod %s: %w", pod.Name, err)
		}
		if leads {
			own = append(own, pod.Pod)
		}
	}
	foreign := len(found) - len(own)
	// For a known kind, an empty list really means no pods. For other kinds, the operator
	// decides whether its object is the controller of its pods.
	if len(own) == 0 && foreign > 0 && !owners.known {
		return nil, notListed("the selector of %s matches %d pods, and it does not control any of them, so Lockstep leaves them alone", w.Key, foreign)
	}
	return own, nil
}

// Starts are when the pods of a workload's revision started, and why that isn't known: Lockstep
// lacks the permission.
type Starts struct {
	pods.Starts
	Refused error
}

// Starts reads when the pods of a workload's revision started. It lists the workload's pods, so it
// is meant for rare queries: which content was loaded by a rollout that no watch saw.
func (p *Pods) Starts(ctx context.Context, w *kube.Workload, revision string) (Starts, error) {
	all, err := p.List(ctx, w)
	switch unknown := (pods.Starts{Asked: true, Unknown: true}); {
	case errors.As(err, &unlistable{}):
		return Starts{Starts: unknown}, nil
	case apierrors.IsForbidden(err):
		return Starts{unknown, err}, nil
	case err != nil:
		return Starts{}, err
	}
	return Starts{Starts: pods.StartsOf(all, revision)}, nil
}

// podSelector is the workload's selector. An empty one would match every pod of the namespace,
// which is never intended.
func podSelector(w *kube.Workload) (labels.Selector, error) {
	if w.Selector == nil {
		return nil, notListed("%s does not have a pod selector in spec.selector", w.Key)
	}
	selector, err := metav1.LabelSelectorAsSelector(w.Selector)
	if err != nil {
		return nil, notListed("read the selector of %s: %w", w.Key, err)
	}
	if selector.Empty() {
		return nil, notListed("the selector of %s is empty and would match every pod in the namespace", w.Key)
	}
	return selector, nil
}

func newPod(pod *corev1.Pod) pods.Pod {
	p := pods.Pod{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID),
		Created:     pod.CreationTimestamp.Time,
		Terminating: pod.DeletionTimestamp != nil,
		Revision:    revisionOf(pod), Accepted: acceptedAt(pod), Started: startedAt(pod),
		Version: timeline.WrittenUpTo(pod.ResourceVersion).Max,
		Shown:   input.ParseShown(pod.Annotations[settings.Inputs]).Marks(),
	}
	for _, c := range pod.Status.Conditions {
		p.Ready = p.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	return p
}

// Evict requests the pod's eviction; disruption budgets may refuse it.
func (p *Pods) Evict(ctx context.Context, pod pods.Pod) error {
	uid := types.UID(pod.UID)
	return p.client.SubResource("eviction").Create(ctx,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
		&policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
		})
}

// Touch writes the versions into an annotation of the pod. Any change of a pod makes its kubelet
// sync the pod and its volumes immediately. Another pod of that name is a conflict.
func (p *Pods) Touch(ctx context.Context, pod pods.Pod, shown string) error {
	body, err := patch.Annotations(patch.Target{UID: pod.UID}, map[string]*string{settings.Inputs: &shown})
	if err != nil {
		return err
	}
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return access.PatchByUID(ctx, p.client, o, client.RawPatch(types.MergePatchType, body))
}

// unlistable is why the object itself doesn't let Lockstep find its pods.
type unlistable struct{ error }

func (u unlistable) Unwrap() error { return u.error }

func notListed(format string, values ...any) error {
	return unlistable{fmt.Errorf(format, values...)}
}
