package lineage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Revisions reads the revisions of a workload from the API server. It lists by label, so it is
// meant for rare queries: what happened while the controller was down.
func Revisions(ctx context.Context, c client.Reader, w *kube.Workload) (timeline.Past, error) {
	var found []timeline.Revision
	behind := false
	err := eachRevision(ctx, c, w, func(o client.Object, template *corev1.PodTemplateSpec, current bool) {
		revision := newRevision(w.Kind, o, template)
		revision.Current = current
		behind = behind || isBehind(w, o, revision.Number)
		found = keepNewest(found, revision)
	})
	switch {
	case apierrors.IsForbidden(err):
		return timeline.Past{Asked: true, Refused: err}, nil
	case err != nil:
		return timeline.Past{}, err
	case behind:
		return timeline.Past{Asked: true, NotActed: true}, nil
	}
	return timeline.Past{Asked: true, Revisions: found}, nil
}

// maxRevisions bounds the revisions of one workload that are kept while it waits. Those beyond
// are treated like older ones, which the workload's controller has deleted.
const maxRevisions = 64

// keepNewest adds a revision, and drops the oldest one that isn't current when there are too
// many. The last one that is said to be current is.
func keepNewest(all []timeline.Revision, r timeline.Revision) []timeline.Revision {
	for i := range all {
		all[i].Current = all[i].Current && !r.Current
	}
	all = append(all, r)
	if len(all) <= maxRevisions {
		return all
	}
	oldest := slices.IndexFunc(all, func(r timeline.Revision) bool { return !r.Current })
	for i, r := range all {
		if !r.Current && isOlder(r, all[oldest]) {
			oldest = i
		}
	}
	return slices.Delete(all, oldest, oldest+1)
}

// isOlder compares numbers, since a revision that is used again gets a new one. Kinds without
// numbers have only times.
func isOlder(a, b timeline.Revision) bool {
	return cmp.Or(cmp.Compare(a.Number, b.Number), a.Created.Compare(b.Created)) < 0
}

// eachRevision lists the revisions of a workload. The last one that it calls current is the one
// that new pods are made from. It skips revisions whose template cannot be read.
func eachRevision(ctx context.Context, c client.Reader, w *kube.Workload, see func(o client.Object, template *corev1.PodTemplateSpec, current bool)) error {
	if w.Selector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(w.Selector)
	if err != nil {
		return fmt.Errorf("read the selector of %s: %w", w.Key, err)
	}
	found, newest := false, int64(0)
	err = eachOwn(ctx, c, w, selector, func(o client.Object) {
		template, err := w.Kind.Revisions.TemplateOf(o)
		if err != nil {
			return
		}
		current := makesPods(w, o, template) && (!found || sequence(o) > newest)
		if current {
			found, newest = true, sequence(o)
		}
		see(o, template, current)
	})
	if err != nil {
		return fmt.Errorf("list %ss of %s: %w", w.Kind.Revisions.Kind, w.Key, err)
	}
	return nil
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
	text := kube.TextIn(template)
	return timeline.Revision{
		Name: o.GetName(), Created: o.GetCreationTimestamp().Time,
		Written: timeline.WrittenUpTo(o.GetResourceVersion()).Max,
		Number:  kind.RevisionNumber(o), Earlier: kind.EarlierNumbers(o),
		Shown: input.ParseShown(text).Marks(), Text: fmt.Sprintf("%x", sha256.Sum256([]byte(text))),
	}
}

func controlledBy(o client.Object, uid string) bool {
	owner := kube.ControllerOf(o)
	return owner != nil && string(owner.UID) == uid
}
