package follow

import (
	"context"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// gather reads everything that the decision on a workload depends on.
func (r *Reconciler) gather(ctx context.Context, w *kube.Workload) (Input, error) {
	in := Input{
		Intent:        r.intent(w),
		Entry:         r.entry(w),
		NoTemplate:    w.Problem,
		PodsAllowed:   r.Pods != nil,
		ReadsByItself: w.Kind.StartsPods(),
		MaxDelay:      r.options.MaxDelay,
		Now:           r.Now(),
	}
	if len(in.Intent.Problems) > 0 {
		return in, nil
	}
	findings, err := r.Inputs.Assess(ctx, w, in.Intent, in.Entry)
	in.Findings = findings
	return in, err
}

func (r *Reconciler) intent(w *kube.Workload) settings.Intent {
	var defaults map[string]string
	if ns, ok := r.Cluster.Namespace(w.Key.Namespace); ok {
		defaults = ns.Annotations
	}
	return r.Vocabulary.Intent(w.Annotations, defaults)
}

// entry is what is on record. Another UID under the same name is another
// workload, about which nothing is known.
func (r *Reconciler) entry(w *kube.Workload) record.Entry {
	e, ok := r.Records.Entry(w.Key)
	if ok && e.UID == w.UID {
		return e
	}
	return record.Entry{ID: w.Key.ID(), UID: w.UID, Inputs: map[input.ID]record.Given{}, Lost: e.Lost}
}
