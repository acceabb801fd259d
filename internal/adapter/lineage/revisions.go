package lineage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Revisions reads the revisions of a workload from the API server. It lists by label, so it is
// meant for rare queries: what happened while the controller was down.
func Revisions(ctx context.Context, c client.Reader, w *kube.Workload) (timeline.Past, error) {
	var found []timeline.Revision
	behind := false
	current, err := eachRevision(ctx, c, w, func(o client.Object, template *corev1.PodTemplateSpec) {
		revision := newRevision(w.Kind, o, template)
		behind = behind || isBehind(w, o, revision.Number)
		found = append(found, revision)
	})
	switch {
	case apierrors.IsForbidden(err):
		return timeline.Past{Asked: true, Refused: err}, nil
	case err != nil:
		return timeline.Past{}, err
	case behind:
		return timeline.Past{Asked: true, NotActed: true}, nil
	case current >= 0:
		found[current].Current = true
	}
	return timeline.Past{Asked: true, Revisions: found}, nil
}

// eachRevision lists the revisions of a workload, and returns the position of the one that new
// pods are made from, -1 when unknown. It skips revisions whose template cannot be read.
func eachRevision(ctx context.Context, c client.Reader, w *kube.Workload, see func(client.Object, *corev1.PodTemplateSpec)) (current int, err error) {
	if w.Selector == nil {
		return -1, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(w.Selector)
	if err != nil {
		return -1, fmt.Errorf("read the selector of %s: %w", w.Key, err)
	}
	sort := w.Kind.Revisions
	list := sort.NewList()
	if err := c.List(ctx, list, client.InNamespace(w.Key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return -1, fmt.Errorf("list %ss of %s: %w", sort.Kind, w.Key, err)
	}
	count, newest := 0, int64(0)
	current = -1
	err = meta.EachListItem(list, func(item runtime.Object) error {
		o, ok := item.(client.Object)
		if !ok || !controlledBy(o, w.UID) {
			return nil
		}
		template, err := sort.TemplateOf(o)
		if err != nil {
			return nil //nolint:nilerr // one that cannot be read shows nothing
		}
		if makesPods(w, o, template) && (current < 0 || sequence(o) > newest) {
			current, newest = count, sequence(o)
		}
		count++
		see(o, template)
		return nil
	})
	return current, err
}

func newRevision(kind kube.Kind, o client.Object, template *corev1.PodTemplateSpec) timeline.Revision {
	return timeline.Revision{
		Name: o.GetName(), Created: o.GetCreationTimestamp().Time,
		Number: kind.RevisionNumber(o), Earlier: kind.EarlierNumbers(o), Shown: kube.ShownIn(template), Text: kube.TextIn(template),
	}
}

func controlledBy(o client.Object, uid string) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && string(owner.UID) == uid
}
