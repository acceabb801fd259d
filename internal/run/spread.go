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
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// gatekeepers know what delays or stops a change.
func (p *parts) gatekeepers() rollouts.Gatekeepers {
	return rollouts.Gatekeepers{
		Stopped: p.stops.For, NotifyProblem: p.notifyProblem, Kinds: p.options.Scope.Kinds,
		Failure: p.records.Failure, Stops: p.records, Bars: p.bars, SourceReference: p.sourceReference,
	}
}

// isWanted reports whether workloads have a version on record or can be due for it: their source, or a copy of it, has
// it, or an image is on their own record. It is stopped unless a user has resumed it in each of these sources.
func (p *parts) isWanted(of input.Change) (wanted, stopped bool) {
	current := false
	stopped = !of.ID.IsSource()
	p.cache.Copies(of, func(s *kube.Source) {
		if record.Published(configs.ChangeOf(s, of.IsShared())) == of {
			current = true
			stopped = stopped || !slices.Contains(settings.ForSource(s.Annotations).Resume, of.Version)
		}
	})
	p.cache.Followers(of, func(w *kube.Workload) {
		e, _ := p.records.Entry(w.Key)
		wanted = wanted || current || e.UsesImage(of.Version)
	})
	return wanted, wanted && stopped
}

// bars reports whether a version on record is stopped for workloads that can be due for it.
func (p *parts) bars(of input.Change) bool {
	_, stopped := p.isWanted(of)
	return stopped
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

// sweepChanges removes the failures of versions that certainly no workload has or can be due for, and series of changes
// that are over.
func (p *parts) sweepChanges() {
	if !p.cache.KnowsNamespaces() {
		return
	}
	p.records.SweepChanges(func(of input.Change) bool {
		wanted, _ := p.isWanted(of)
		return wanted || !p.cache.ListsAll(of.Namespace)
	}, func(known record.Series) bool {
		return p.options.Follow.Safety.Damps(known, p.options.Now())
	})
}
