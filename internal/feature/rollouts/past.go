package rollouts

import (
	"context"
	"slices"
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// past is the workload's revisions and pods as one reconciliation sees them. Every caller queries
// them here, so the API server is queried once per reconciliation, and not again while the
// workload waits.
type past struct {
	workload *kube.Workload
	// request is nil where revisions aren't used.
	request func(context.Context, *kube.Workload) (timeline.Past, error)
	// starts is nil where pods aren't used.
	starts  func(context.Context, *kube.Workload, string) (pods.Starts, error)
	waiting *sync.Map
	known   timeline.Past
}

// moment is every property of a workload that its past depends on.
type moment struct {
	uid      string
	template record.Template
	observed bool
	number   int64
	update   string
}

type waiting struct {
	moment
	timeline.Past
}

func (p *past) moment() moment {
	w := p.workload
	return moment{w.UID, w.Template(), w.Status.Observed, w.Revision, w.Status.UpdateRevision}
}

// ask returns the workload's past. Without the permission, or where revisions or pods aren't used, it
// doesn't contain them.
func (p *past) ask(ctx context.Context, from timeline.Evidence) (timeline.Past, error) {
	known, err := p.revisions(ctx)
	if err != nil || from != timeline.FromPods || known.Starts.Asked {
		return known, err
	}
	known.Starts = pods.Starts{Asked: true, Unknown: true}
	if p.starts != nil {
		known.Starts, err = p.starts(ctx, p.workload, currentOf(known.Revisions))
	}
	p.known = known
	return known, err
}

// currentOf is the name of the revision that pods are made from, empty when unknown.
func currentOf(revisions []timeline.Revision) string {
	i := slices.IndexFunc(revisions, func(r timeline.Revision) bool { return r.Current })
	if i < 0 {
		return ""
	}
	return revisions[i].Name
}

func (p *past) revisions(ctx context.Context) (timeline.Past, error) {
	if p.known.Asked {
		return p.known, nil
	}
	if before, ok := p.waiting.Load(p.workload.Key); ok && before.(waiting).moment == p.moment() {
		p.known = before.(waiting).Past
		return p.known, nil
	}
	if p.request == nil {
		return timeline.Past{Asked: true}, nil
	}
	var err error
	p.known, err = p.request(ctx, p.workload)
	return p.known, err
}

// close keeps the answer until the next reconciliation when the workload waits for a
// change. An incomplete answer is queried again.
func (p *past) close(waits bool) {
	if !waits || !p.known.Asked || p.known.NotActed || p.known.Refused != nil {
		p.waiting.Delete(p.workload.Key)
		return
	}
	if p.known.Starts.Unknown || p.known.Starts.Accepted.IsZero() { // pods may start meanwhile
		p.known.Starts = pods.Starts{}
	}
	p.waiting.Store(p.workload.Key, waiting{p.moment(), p.known})
}
