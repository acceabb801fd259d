package revisions

import (
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
		TooLarge:        r.Cluster.TooLarge(o.Key.Namespace),
		UnreadableKinds: r.Cluster.UnreadableKinds(o.Key.Namespace),
		Observe:         r.options.Observe || r.Observes(o.Key.Namespace),
		Grace:           r.options.Grace,
		Now:             r.Now(),
	}
	for _, h := range r.Cluster.Users(o.Key) {
		in.Users = append(in.Users, h.OwnerReference())
	}
	_, ok = r.Cluster.Object(o.Key)
	return in, ok
}
