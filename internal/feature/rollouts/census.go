package rollouts

import (
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// census lists the workloads that use a change, and where each of them is with it, as far as
// cache and record show. Of those that aren't on record as due, their own check says more.
func (r *Reconciler) census(c input.Change) (members []spread.Member, uncertain []kube.Key) {
	r.Cluster.Followers(c, func(w *kube.Workload) {
		e, _ := r.Records.Entry(w.Key)
		m := r.memberOnRecord(w, e, c)
		members = append(members, m)
		// A quiet window on record doesn't show what else is in the way, such as a hold.
		isCertain := waitsOnRecord(e, c) && awaitsOthers(e.Decision.Reason)
		if m.Standing != spread.Has && m.Standing != spread.Proven && !isCertain {
			uncertain = append(uncertain, w.Key)
		}
	})
	return members, uncertain
}

// memberOnRecord is a workload in a change, without a check of its inputs.
func (r *Reconciler) memberOnRecord(w *kube.Workload, e record.Entry, c input.Change) spread.Member {
	p := w.Progress(r.Now())
	m := spread.Member{
		ID: w.Key.ID(), Namespace: w.Key.Namespace, Standing: spread.Due, Begins: beginsOnRecord(e.Decision, p.Now), First: r.gatherer.intent(w).First,
		Able: p.HasPods && p.Health == health.Done && !w.Kind.StartsPods() && !w.Status.RollsByHand(), Healthy: p.IsHealthy(r.options.Safety.Settle),
	}
	given, has := givenOf(e, c)
	if waitsOnRecord(e, c) {
		m.Why = e.Decision.Reason
	}
	switch {
	case given.Stage == record.StageRolling && e.Turn.Template != "" && (has || c.IsHidden()):
		if w.RolledOutAt.After(e.RolledOutAt) {
			e.Turn.Template = p.Template // it goes on with a patch of ours that isn't on record
		}
		end, _ := e.Turn.Judge(p, r.options.Safety.patience())
		if w.Template().IsOlder(e.Template) {
			end = spread.Open
		}
		m.Standing, m.Able = standingOf(e.Turn, end), e.Turn.Healthy
	case evicts(e, c):
		m.Standing, m.Able = standingOf(e.Turn, spread.Open), e.Turn.Healthy
	case has && given.Stage == record.StageProven:
		m.Standing = spread.Proven
	case has:
		m.Standing = spread.Has
	case isShownIn(w.Shown, c), c.IsHidden() && isPatched(w.Shown, given, c):
		m.Standing, m.Able = spread.Rolling, true // the process ended between patch and record
		if p.Health == health.Failed {
			m.Standing = standingOf(spread.Turn{Healthy: wasHealthy(e, w.Status.Counts.Available > 0)}, spread.Failing)
		}
	}
	return m
}

// waitsOnRecord reports whether the change is on record as due, and the workload asks for its turn
// by itself.
func waitsOnRecord(e record.Entry, c input.Change) bool {
	if e.Decision.Reason != input.QuietWindow && !awaitsOthers(e.Decision.Reason) {
		return false
	}
	for id, given := range e.Inputs {
		if given.Due != "" && (id == c.ID || id.Kind == input.KindImage && c.ID.Kind == input.KindImage && given.Due == c.Version) {
			return true
		}
	}
	return false
}

// beginsOnRecord is when a workload can begin, as far as its last decision shows that.
func beginsOnRecord(d record.Decision, now time.Time) time.Time {
	switch {
	case d.Reason == input.QuietWindow && d.Next.After(now):
		return d.Next
	case awaitsOthers(d.Reason) && d.Since.Before(now):
		return d.Since
	}
	return now // its own check says more
}

// givenOf is the entry of the change's input, and whether its version is that of the change.
// An image is on record by its container.
func givenOf(e record.Entry, c input.Change) (given record.Delivered, has bool) {
	if c.ID.IsSource() {
		given = e.Inputs[c.ID]
		return given, given.Mark().Digest == c.Version
	}
	for id, given := range e.Inputs {
		if id.Kind == input.KindImage && given.Version.Short() == c.Version {
			return given, true
		}
	}
	return record.Delivered{}, false
}

// evicts reports whether a series of evictions on trial delivers the change.
func evicts(e record.Entry, c input.Change) bool {
	if e.Eviction.Since.IsZero() || e.Turn.Template == "" {
		return false
	}
	mark, delivers := input.ParseShown(e.Eviction.For)[c.ID]
	return delivers && (mark.Digest == c.Version || c.IsHidden())
}

// isShownIn reports whether a template shows the change.
func isShownIn(shown input.Shown, c input.Change) bool {
	for id, mark := range shown {
		if id.Kind == c.ID.Kind && (id == c.ID || !c.ID.IsSource()) && strings.HasPrefix(strings.TrimPrefix(mark.Digest, "sha256:"), c.Version) {
			return true
		}
	}
	return false
}

// isPatched reports whether a template shows another version than the record, by a patch that isn't
// on record. It may be an earlier version of the change.
func isPatched(shown input.Shown, given record.Delivered, c input.Change) bool {
	mark, shows := shown[c.ID]
	return shows && given.RevertedTo == "" && mark.Digest != given.Mark().Digest
}

// standingOf is where a workload is with the changes that its rollout on trial delivered.
func standingOf(t spread.Turn, end spread.End) spread.Standing {
	switch {
	case end == spread.Passed && t.Healthy:
		return spread.Proven
	case end == spread.Failing && t.Healthy:
		return spread.Failed
	case end == spread.Open && !t.Freed:
		return spread.Rolling
	}
	return spread.Has
}

// maxRolling is how many workloads of a namespace may roll at the same time for one change, zero
// when its annotation doesn't limit that.
func (r *Reconciler) maxRolling(namespace string) int {
	ns, known := r.Cluster.Namespace(namespace)
	if !known || ns.Annotations[settings.MaxRolling] == "" {
		return 0
	}
	return r.Vocabulary.Intent(nil, ns.Annotations).MaxRolling
}
