package lineage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
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
	count, newest := 0, int64(0)
	current = -1
	err = eachOwn(ctx, c, w, selector, func(o client.Object) {
		template, err := w.Kind.Revisions.TemplateOf(o)
		if err != nil {
			return
		}
		if makesPods(w, o, template) && (current < 0 || sequence(o) > newest) {
			current, newest = count, sequence(o)
		}
		count++
		see(o, template)
	})
	if err != nil {
		return -1, fmt.Errorf("list %ss of %s: %w", w.Kind.Revisions.Kind, w.Key, err)
	}
	return current, nil
}

// eachOwn lists the revisions that the workload controls. As soon as another workload's
// revision matches the selector, it reads only metadata to find the remaining ones: workloads
// that select each other's revisions would otherwise each read all of them.
func eachOwn(ctx context.Context, c client.Reader, w *kube.Workload, selector labels.Selector, see func(client.Object)) error {
	matching := []client.ListOption{client.InNamespace(w.Key.Namespace), client.MatchingLabelsSelector{Selector: selector}}
	seen, shared := map[string]bool{}, false
	err := pages.Each(ctx, c, w.Kind.Revisions.NewList(), func(o client.Object) bool {
		if shared = !controlledBy(o, w.UID); shared {
			return false
		}
		seen[o.GetName()] = true
		see(o)
		return true
	}, matching...)
	if err != nil || !shared {
		return err
	}
	names, err := ownNames(ctx, c, w, matching)
	for _, name := range names {
		if err != nil {
			break
		}
		if seen[name] {
			continue
		}
		err = pages.Each(ctx, c, w.Kind.Revisions.NewList(), func(o client.Object) bool { see(o); return true },
			client.InNamespace(w.Key.Namespace), client.MatchingFields{"metadata.name": name})
	}
	return err
}

// ownNames finds the workload's revisions by their metadata.
func ownNames(ctx context.Context, c client.Reader, w *kube.Workload, matching []client.ListOption) ([]string, error) {
	headers := &metav1.PartialObjectMetadataList{}
	headers.SetGroupVersionKind(w.Kind.Revisions.GroupVersion().WithKind(w.Kind.Revisions.Kind + "List"))
	var names []string
	err := pages.Each(ctx, c, headers, func(o client.Object) bool {
		if controlledBy(o, w.UID) {
			names = append(names, o.GetName())
		}
		return true
	}, matching...)
	return names, err
}

func newRevision(kind kube.Kind, o client.Object, template *corev1.PodTemplateSpec) timeline.Revision {
	return timeline.Revision{
		Name: o.GetName(), Created: o.GetCreationTimestamp().Time,
		Number: kind.RevisionNumber(o), Earlier: kind.EarlierNumbers(o), Shown: kube.ShownIn(template), Text: kube.TextIn(template),
	}
}

func controlledBy(o client.Object, uid string) bool {
	owner := kube.ControllerOf(o)
	return owner != nil && string(owner.UID) == uid
}
