package lint

import (
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/core/review"
)

// order finds names in lockstep.dev/after that are in none of the files, and workloads that wait
// for each other.
func (c *checking) order(workloads []manifest.Object) {
	all := make([]review.Order, len(workloads))
	for i, o := range workloads {
		all[i] = review.Order{Namespace: o.GetNamespace(), Name: kube.NameOf(c.Kinds, o.GroupVersionKind().GroupKind().String()+"/"+o.GetName())}
		for _, name := range c.Words.Intent(o.GetAnnotations(), nil).After {
			all[i].After = append(all[i].After, kube.NameOf(c.Kinds, name))
		}
	}
	severity, ending := c.absent()
	for i, found := range review.OfOrder(all, ending) {
		for _, f := range found {
			if f.Rule == review.MissingReference {
				f.Severity = severity
			}
			c.add(workloads[i], []review.Mistake{f})
		}
	}
}
