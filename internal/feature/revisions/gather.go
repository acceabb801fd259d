package revisions

import (
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
)

// gather reads everything that the decision on an object depends on. It sends no
// request: all of it is watched.
func (r *Reconciler) gather(o *lineage.Owned) Input {
	return Input{
		Object:          o,
		Users:           r.Cluster.Users(o.Key),
		UnreadableKinds: r.Cluster.UnreadableKinds(o.Key.Namespace),
		Observe:         r.options.Observe || r.Observes(o.Key.Namespace),
		Grace:           r.options.Grace,
		Now:             r.Now(),
	}
}
