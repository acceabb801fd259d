package rollouts

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// Wake sets the function that is called with a workload whose turn may have come.
func (r *Reconciler) Wake(f func(kube.Key)) { r.spreads.Wake(f) }

// takeTurn takes a turn of each change that the decision delivers, before its patch. It reports
// whether there is no place for the workload now, or notes that the rollout is on trial.
func (r *Reconciler) takeTurn(key kube.Key, in *Observation, d Decision) (refused bool) {
	if !in.takesTurn(d) {
		return false
	}
	in.Turn.Taken = true
	if o := r.options.Safety; !o.Ramp && o.MaxRolling == 0 && in.Intent.MaxRolling == 0 {
		return false
	}
	members := map[input.Change]spread.Member{}
	var resumed []input.Change
	for _, f := range d.Due {
		if f.Change.IsZero() || f.Reason == input.PutBack {
			continue
		}
		members[f.Change] = in.member(key, f, r.options.Safety.Settle, r.spreads.limits)
		if in.isResumed(f) {
			resumed = append(resumed, f.Change)
		}
	}
	if in.Turn.Kept = r.spreads.holds(key, members); in.Turn.Kept {
		return false
	}
	granted, why := r.spreads.reserve(key, members, resumed)
	if granted {
		return false
	}
	in.Turn.Taken, in.Turn.Refused = false, true
	in.Turn.Canaries = why.canaries
	if len(why.canaries) > 0 {
		in.Turn.Canary = slices.Min(slices.Collect(maps.Values(why.canaries)))
	}
	in.Recheck = sooner(sooner(in.Recheck, why.recheck), sooner(in.Turn.Settles, r.options.Safety.Timeout))
	return true
}

// member is the workload in one of its changes, ready to begin.
func (in Observation) member(key kube.Key, f input.Finding, settle time.Duration, l spread.Limits) spread.Member {
	return spread.Member{
		ID: key.ID(), Namespace: key.Namespace, First: in.Intent.First, Begins: in.readySince(f, settle, l),
		Able: in.Turn.Able, Healthy: in.Turn.Able && in.Turn.Healthy, AtOnce: f.Pace.AtOnce,
	}
}

// readySince is since when nothing of the workload's own is in the way of its change, or was at first. One that
// became available a moment ago has to stay so for the settle time first. It waits anew for each version, but
// not for ever if the source changes faster than healthy workloads prove it.
func (in Observation) readySince(f input.Finding, settle time.Duration, l spread.Limits) time.Time {
	at, ever := in.Now, in.Entry.DelaySince.Add(max(in.MaxDelay, in.Intent.Quiet))
	if given := in.Entry.Inputs[f.ID]; given.Due == f.Current.Short() && !given.Waits.IsZero() && given.Waits.Before(at) {
		at = given.Waits
	}
	switch {
	case in.Turn.Able && !in.Turn.Healthy:
		at = at.Add(settle)
	case !in.Entry.DelaySince.IsZero() && ever.Before(at) && in.Now.Sub(ever) >= l.Longest():
		at = ever
	}
	return at
}

// followTurn reports where the workload is with its changes after a decision, which an error may
// have ended, and waits for the end of a rollout on trial. It returns when to check that.
func (r *Reconciler) followTurn(got Gathered, d Decision, err error) (recheck time.Duration) {
	if !got.Observation.Turn.Tracked {
		return 0
	}
	key, in := got.Workload.Key, got.Observation
	e, _ := r.Records.Entry(key)
	open := e.Turn.Template != "" && !e.Turn.Freed
	awaited := e.Turn.Template != "" || in.Intent.First && !d.PendingSince.IsZero() // by the other workloads
	awaited = awaited || d.Reason == input.AwaitsFirst                              // only while it is healthy
	if awaited && !d.AwaitsStatus && !in.AwaitsStatus {
		r.Cluster.AwaitHealth(got.Workload)
	}
	switch {
	case e.Turn.Template == "" || e.Turn.Template == in.Entry.Turn.Template:
	case in.Turn.Taken:
		recheck = r.options.Safety.Timeout
	default:
		recheck = time.Millisecond // it was found on trial, and may have ended long ago
	}
	if d.Reason == input.GenerationNotObserved {
		return sooner(recheck, r.spreads.postpone(key))
	}
	if !open && r.spreads.isIdle(key) || open && d.isMistake() && in.Turn.End == spread.Open {
		return recheck // nothing more is known than before, such as of a patch that isn't on record
	}
	members := map[input.Change]spread.Member{}
	for _, f := range in.Findings {
		if f.Change.IsZero() {
			continue
		}
		m := in.member(key, f, r.options.Safety.Settle, r.spreads.limits)
		m.Standing, m.Why = in.standing(f, e, d, err)
		m = in.stands(m, e.Turn)
		if before, several := members[f.Change]; !several || before.Standing < m.Standing {
			members[f.Change] = m
		}
	}
	r.spreads.report(key, members, open)
	return recheck
}

// stands adds to a member what follows from its standing: whether its rollout can prove the change, or when it
// can begin.
func (in Observation) stands(m spread.Member, t spread.Turn) spread.Member {
	switch {
	case m.Standing == spread.Rolling:
		m.Able = t.Healthy
	case m.Why == input.ReloadFailed || m.Standing == spread.Held:
		m.Begins = time.Time{}
	case m.Standing == spread.Due:
		m.Begins = in.begins()
	}
	return m
}

// standing is where the workload is with the change of an input, after a decision.
func (in Observation) standing(f input.Finding, e record.Entry, d Decision, err error) (spread.Standing, input.Reason) {
	given := e.Inputs[f.ID]
	isDue := f.Standing == input.Due && f.Reason != input.PutBack
	switch {
	case isDue && err != nil && d.isOvertaken(err) && in.Turn.Kept:
		return spread.Rolling, "" // perhaps by the patch whose answer was lost; the cache will show it
	case isDue && err != nil && d.isOvertaken(err):
		return spread.Due, ""
	case isDue && err != nil && in.Turn.Taken && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown:
		return spread.Rolling, "" // the API server may have stored the patch; the next check sees it
	case isDue && err != nil:
		return spread.Due, input.ReloadFailed
	case isDue && d.Verb == Evict && !d.Delivered && e.Turn.Template != "":
		return standingOf(e.Turn, spread.Open), ""
	case isDue && (!d.Delivered || !contains(d.Due, f.ID)):
		return in.dueStanding(f, d)
	case f.Standing == input.Record && given.Version != f.Current && f.Reason != input.DeliveredBefore:
		return spread.Has, "" // what is on record is about an earlier version
	case given.Stage == record.StageProven:
		return spread.Proven, ""
	case f.Reason == input.DeliveredBefore && in.State.Shown[f.ID] == f.Shows && in.State.Health.State == health.Failed && e.Turn.Healthy:
		return spread.Failed, "" // the next check notes it
	case given.Stage == "" && f.Reason == input.DeliveredBefore && in.State.Shown[f.ID] == f.Shows && in.Turn.Proves:
		return spread.Rolling, "" // it is put on record later
	case given.Stage == record.StageRolling && e.Turn.Template == in.Entry.Turn.Template:
		return standingOf(spread.Turn{Healthy: e.Turn.Healthy, Freed: in.Entry.Turn.Freed}, in.Turn.End), ""
	case given.Stage == record.StageRolling:
		return spread.Rolling, ""
	}
	return spread.Has, ""
}

// dueStanding is where the workload is with a change that the decision doesn't deliver.
func (in Observation) dueStanding(f input.Finding, d Decision) (spread.Standing, input.Reason) {
	switch {
	case f.IsWithheld():
		return spread.Held, f.Bars[0].Reason
	case awaitsOthers(d.Reason):
		return spread.Ready, ""
	case d.Verb == Wait:
		if why, awaits := in.awaitsUser(); awaits {
			return spread.Held, why
		}
		return spread.Due, d.Reason
	}
	return spread.Held, d.Reason
}

// noteFailures puts on record that the workload failed with the changes of its rollout, and reports the versions that
// are stopped.
func (r *Reconciler) noteFailures(ctx context.Context, w *kube.Workload, in Observation) {
	if r.Stops == nil || r.options.Safety.StopAfter == 0 || in.Turn.End != spread.Failing || !in.Entry.Turn.Healthy {
		return
	}
	for _, f := range in.Findings {
		if f.Change.IsZero() || !in.isOnTrial(f) {
			continue
		}
		failure, added, full := r.Stops.AddFailure(f.Change, w.Key.ID(), in.Now)
		if !added {
			continue
		}
		r.logNoRoom(f.Change, full)
		why := spread.Stopped(failure.On, r.options.Safety.StopAfter)
		r.Log.Info("failed", "workload", w.Key.Log(), "change", f.Change.String(), "message", in.State.Health.Message, "stopped", why != "")
		if why != "" {
			r.reportStop(ctx, w, f, why+", which was healthy before ("+in.State.Health.Message+")")
		}
	}
}

func (r *Reconciler) logNoRoom(c input.Change, full string) {
	if full != "" {
		r.Log.Info("a stopped or damped version is only in memory", "change", c.String(), "reason", string(input.RecordFull), "message", full)
	}
}

// reportStop reports on its source that a version is stopped, unless a user has resumed it there, and wakes the
// workloads that wait for their turn.
func (r *Reconciler) reportStop(ctx context.Context, w *kube.Workload, f input.Finding, why string) {
	if about := r.sourceReference(ctx, w.Key.Namespace, f.Change.ID); about != nil && !isResumed(f, f.Pace.Resumed) {
		r.Announcer.Announce(announce.Event{
			About: about, Warning: true, Reason: string(input.VersionStopped), Action: announce.ActionHold, Change: f.Change,
			Note: f.Change.String() + " " + why + "; Lockstep doesn't deliver it to further workloads",
		})
	}
	r.spreads.wakeWaiting(f.Change)
}

// reportCanary reports on the sources, once in each namespace, that their changes wait for the workload that a user
// wants to be the first.
func (r *Reconciler) reportCanary(ctx context.Context, key kube.Key, in Observation, d Decision) {
	if d.Reason != input.AwaitsFirst {
		return
	}
	for c, canary := range in.Turn.Canaries {
		if !r.spreads.isNews(c, key.Namespace, canary) {
			continue
		}
		if about := r.sourceReference(ctx, key.Namespace, c.ID); about != nil {
			r.Announcer.Announce(announce.Event{
				About: about, Reason: string(input.AwaitsFirst), Action: string(Wait), Change: c,
				Note: c.String() + ": " + canary + "; the other healthy workloads keep the earlier version until then",
			})
		}
	}
}

// sourceReference is the object reference of a source for events, nil for an image, or when it
// can't be read.
func (r *Reconciler) sourceReference(ctx context.Context, namespace string, id input.ID) *corev1.ObjectReference {
	if !id.IsSource() || r.SourceReference == nil {
		return nil
	}
	about, err := r.SourceReference(ctx, namespace, id)
	if err != nil {
		r.Log.Error(err, "cannot report a stop on its source", "source", id.String(), "namespace", namespace)
	}
	return about
}
