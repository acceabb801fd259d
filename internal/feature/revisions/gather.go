package revisions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
)

// gather reads everything that the decision on an object depends on. It doesn't send a
// request: all of it is watched. It is false when Lockstep can no longer decide on the
// object: it stopped watching the namespace meanwhile, and may have forgotten some of its
// users.
func (r *Reconciler) gather(o *ownership.Owned) (in Observation, ok bool) {
	in = Observation{
		Deleting:        o.Deleting,
		Created:         o.Created,
		Owners:          o.Owners,
		TooLarge:        references(r.Cluster.TooLarge(o.Key.Namespace)),
		UnreadableKinds: r.Cluster.UnreadableKinds(o.Key.Namespace),
		Observe:         r.options.Observe || r.Observes(o.Key.Namespace),
		Grace:           r.options.Grace,
		Now:             r.Now(),
	}
	in.StoppedBy, in.Stopped = r.Stopped(o.Key.Namespace)
	in.Users = references(r.Cluster.Users(o.Key))
	_, ok = r.Cluster.Object(o.Key)
	return in, ok
}

func references(holders []*lineage.Holder) []metav1.OwnerReference {
	var all []metav1.OwnerReference
	for _, h := range holders {
		all = append(all, h.OwnerReference())
	}
	return all
}
