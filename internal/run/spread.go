package run

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// gatekeepers know what delays or stops a change.
func (p *parts) gatekeepers() rollouts.Gatekeepers {
	return rollouts.Gatekeepers{
		Stopped: p.stops.For, NotifyProblem: p.notifyProblem, Kinds: p.options.Scope.Kinds,
		Change: p.records.Change, Stops: p.records, IsCurrent: p.isCurrent, SourceReference: p.sourceReference,
	}
}

// isCurrent reports whether a copy of a shared source still has the version on record.
func (p *parts) isCurrent(of input.Change, version string) (current bool) {
	p.cache.Copies(of.ID, func(s *kube.Source) {
		current = current || record.VersionOf(configs.ChangeOf(s, true)) == version
	})
	return current
}

// isPast reports whether a version on record is over without a check of the workload that failed
// with it, which may be gone. With a source of one namespace, the check of any user shows that.
func (p *parts) isPast(of input.Change, version string) bool {
	switch {
	case of.ID.Kind == input.KindImage:
		past := true
		p.cache.Followers(of, func(w *kube.Workload) {
			e, _ := p.records.Entry(w.Key)
			past = past && !e.UsesImage(version)
		})
		return past
	case of.IsShared():
		return !p.isCurrent(of, version)
	}
	return false
}

func (p *parts) arePast(of input.Change, failures []record.Failure) bool {
	return !slices.ContainsFunc(failures, func(f record.Failure) bool { return !p.isPast(of, f.Version) })
}

// isShared reports whether the changes of an input are the same in all namespaces.
func (p *parts) isShared(id input.ID) bool { return slices.Contains(p.options.Shared, id) }

// sourceReference is the object reference of a source. It lists, because the controller may list
// and watch Secrets, and isn't allowed to get one.
func (p *parts) sourceReference(ctx context.Context, namespace string, id input.ID) (*corev1.ObjectReference, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(id.Kind) + "List"))
	named := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", id.Name)}
	var about *corev1.ObjectReference // nil when it was deleted meanwhile
	for o, err := range pages.Items(ctx, p.client, list, client.InNamespace(namespace), named) {
		if err != nil {
			return nil, fmt.Errorf("read %s of namespace %s: %w", id, namespace, err)
		}
		about = &corev1.ObjectReference{APIVersion: "v1", Kind: string(id.Kind), Namespace: namespace, Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
	}
	return about, nil
}

// sweepChanges removes stops of sources that no workload follows any more, those of versions that
// nobody has or gets any more, and series of changes that are over.
func (p *parts) sweepChanges() {
	p.records.SweepChanges(func(of input.Change, known record.Change) bool {
		if p.options.Follow.Safety.IsCalm(known, p.options.Now()) && p.arePast(of, known.Failures) {
			return true
		}
		used := false
		p.cache.Followers(of, func(*kube.Workload) { used = true })
		return !used
	})
}
