package lineage

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Revisions asks the API server for the revisions of a workload. It is a list by
// label, so it is for rare questions: what happened while nobody was watching.
func Revisions(ctx context.Context, c client.Reader, w *kube.Workload) ([]timeline.Revision, error) {
	if w.Selector == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(w.Selector)
	if err != nil {
		return nil, fmt.Errorf("read the selector of %s: %w", w.Key, err)
	}
	if w.Key.Kind == "StatefulSet" || w.Key.Kind == "DaemonSet" {
		return controllerRevisions(ctx, c, w, selector)
	}
	return replicaSets(ctx, c, w, selector)
}

func replicaSets(ctx context.Context, c client.Reader, w *kube.Workload, selector labels.Selector) ([]timeline.Revision, error) {
	list := &appsv1.ReplicaSetList{}
	if err := c.List(ctx, list, client.InNamespace(w.Key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list ReplicaSets of %s: %w", w.Key, err)
	}
	var found []timeline.Revision
	for i := range list.Items {
		rs := &list.Items[i]
		if controlledBy(rs, w.UID) {
			r := newRevision(rs, &rs.Spec.Template)
			r.Current = isCurrent(w, rs)
			found = append(found, r)
		}
	}
	return found, nil
}

func controllerRevisions(ctx context.Context, c client.Reader, w *kube.Workload, selector labels.Selector) ([]timeline.Revision, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := c.List(ctx, list, client.InNamespace(w.Key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list ControllerRevisions of %s: %w", w.Key, err)
	}
	var found []timeline.Revision
	current, newest := -1, int64(0)
	for i := range list.Items {
		cr := &list.Items[i]
		template, err := revisionTemplate(cr)
		if err != nil || !controlledBy(cr, w.UID) {
			continue // One that cannot be read shows nothing.
		}
		if makesPods(w, cr, template) && cr.Revision > newest {
			current, newest = len(found), cr.Revision
		}
		found = append(found, newRevision(cr, template))
	}
	if current >= 0 {
		found[current].Current = true
	}
	return found, nil
}

// revisionTemplate reads the template out of the patch that a ControllerRevision
// stores.
func revisionTemplate(cr *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(cr.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("read the template of ControllerRevision %s/%s: %w", cr.Namespace, cr.Name, err)
	}
	return &data.Spec.Template, nil
}

func newRevision(o client.Object, template *corev1.PodTemplateSpec) timeline.Revision {
	return timeline.Revision{Name: o.GetName(), Created: o.GetCreationTimestamp().Time, Number: kube.RevisionOf(o), Earlier: earlierNumbers(o), Shown: kube.ShownIn(template)}
}

func controlledBy(o client.Object, uid string) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && string(owner.UID) == uid
}
