package rollouts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/loop"
	"github.com/lockstep-dev/lockstep/internal/adapter/monitoring"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// New makes a Reconciler.
func New(o Options, d Dependencies) *Reconciler {
	reported := newReported()
	r := &Reconciler{
		Dependencies: d, options: o, metrics: newMetrics(d.Metrics, func() tally { return reported.tally(d.Now()) }), reported: reported, conflicts: newConflicts(),
		gatherer: &Gatherer{
			Vocabulary: d.Vocabulary, View: d.Cluster, Families: d.Families,
			Entry: func(key kube.Key) (record.Entry, bool) { return d.Records.Entry(key) },

			Revisions: d.Revisions, Starts: d.OnPods.Starts, Installation: d.Installation, MaxDelay: o.MaxDelay, Safety: o.Safety, Gatekeepers: d.Gatekeepers, Now: d.Now,
		},
		spreads: newSpreads(o, d.Now),
	}
	r.spreads.census, r.spreads.limits.In = r.census, r.maxRolling
	r.gatherer.Before, r.gatherer.paces = r.spreads.before, newPaces(o.Safety, d.Stops, r.logNoRoom)
	r.metrics.addSpread(d.Metrics, r.spreads, d.Gatekeepers)
	if d.Advice == nil {
		r.Advice = func(*kube.Workload, bool) string { return "" }
	}
	if d.OnPods.Pods != nil {
		r.gatherer.Pods = d.OnPods.Pods.List
	} else {
		r.gatherer.PodsOff = cmp.Or(d.OnPods.Off, "this program doesn't support it")
	}
	return r
}

// Feed adds keys to the queue until the context ends.
type Feed func(ctx context.Context, add func(kube.Key))

// Setup adds the loop to the manager. It runs on the leader only.
func (r *Reconciler) Setup(mgr ctrl.Manager, feed Feed) error {
	return loop.Add(mgr, loop.Options[kube.Key]{
		Name: "follow", Workers: r.options.Workers, Reconciler: r, About: "workload", Log: r.Log, Feed: feed,
		NamespaceOf: func(key kube.Key) string { return key.Namespace },
	})
}

// Reconcile brings one workload in step.
func (r *Reconciler) Reconcile(ctx context.Context, key kube.Key) (ctrl.Result, error) {
	if r.Room != nil {
		defer r.Room.FreeRoom(key)
	}
	got, err := r.gatherer.Gather(ctx, key)
	switch w := got.Workload; {
	case err != nil:
		r.spreads.postpone(key)
		return ctrl.Result{}, err
	case w == nil:
		recheck, err := r.forgetGone(key)
		return ctrl.Result{RequeueAfter: recheck}, err
	case w.Deleting:
		r.reported.forgetStanding(key)
		r.spreads.report(key, nil, false)
		return ctrl.Result{}, nil
	}
	r.noteFailures(ctx, got.Workload, got.Observation)
	d := Decide(got.Observation)
	if full := r.reserve(key, got.Observation, d); full != "" {
		got.Observation.RecordFull = full
		d = Decide(got.Observation)
	}
	if r.takeTurn(key, &got.Observation, d) {
		d = Decide(got.Observation)
	}
	recheck, err := r.act(ctx, got, d)
	recheck = sooner(recheck, r.followTurn(got, d, err))
	r.reportCanary(ctx, key, got.Observation, d)
	if _, denied := access.Denial(err); denied {
		d, recheck, err = r.denied(got, d, err), 0, nil
	}
	if err != nil {
		return r.failed(got.Workload, d, err)
	}
	r.conflicts.Forget(key)
	if d.AwaitsStatus || got.Observation.AwaitsStatus || got.Observation.awaitsStart(d) {
		r.Cluster.Await(got.Workload)
	}
	r.welcome(got, d)
	r.report(got, d)
	r.warn(got.Workload, got.Observation)
	if d.Verb == Hold && recheck == 0 {
		recheck = announce.RepeatEvery
	}
	return ctrl.Result{RequeueAfter: sooner(recheck, got.Observation.Recheck)}, nil
}

// reserve keeps room on record for everything that the workload follows, before anything is
// rolled out. It explains why when there is none. A decision that only writes a note reserves
// for itself.
func (r *Reconciler) reserve(key kube.Key, in Observation, d Decision) (full string) {
	if r.Room == nil || len(in.Findings) == 0 || d.isMistake() || d.Reason == input.GenerationNotObserved {
		return ""
	}
	return r.Room.Reserve(key, in.room())
}

// welcome announces once that a workload begins to be followed.
func (r *Reconciler) welcome(got Gathered, d Decision) {
	if got.Observation.Entry.IsKnown() || got.Observation.knowsNothing() || d.Verb == Ignore || d.isMistake() || d.Reason == input.GenerationNotObserved {
		return
	}
	e := followingEvent(got.Workload, got.Observation)
	r.Log.Info("follows", "workload", got.Workload.Key.Log(), "reason", string(input.Following), "sources", names(got.Observation.Findings))
	r.Announcer.Announce(e)
}

// knowsNothing reports whether nothing can be put on record yet because no registry has
// answered.
func (in Observation) knowsNothing() bool {
	return len(matching(in.Findings, func(f input.Finding) bool { return f.Reason == input.Unresolved })) == len(in.Findings)
}

// failed sorts errors by their consequence.
func (r *Reconciler) failed(w *kube.Workload, d Decision, err error) (ctrl.Result, error) {
	if d.isOvertaken(err) {
		r.metrics.countConflict(w)
		return ctrl.Result{RequeueAfter: r.conflicts.When(w.Key)}, nil
	}
	r.metrics.countFailure(w)
	if now := (lastReport{input.ReloadFailed, err.Error()}); r.reported.replace(w.Key, now) != now {
		r.Announcer.Announce(failureEvent(w, d, err))
	}
	return ctrl.Result{}, fmt.Errorf("%s %s: %w", d.Verb, w.Key, err)
}

// denied is the decision once an admission policy has denied the change: it waits for an
// administrator, and isn't an error that the queue retries.
func (r *Reconciler) denied(got Gathered, d Decision, err error) Decision {
	r.metrics.countFailure(got.Workload)
	d = d.failure(err)
	d.PendingSince = got.Observation.pendingSince()
	return d
}

// report notifies users once. The same decision in the same situation isn't repeated, except
// for a change that something forbids. While a workload waits for one reason, only the first
// wait is logged at the default level, because constantly changing content would fill the
// log.
func (r *Reconciler) report(got Gathered, d Decision) {
	w := got.Workload
	r.reported.setStanding(w.Key, d, got.Observation.Warnings)
	now := lastReport{d.Reason, d.Message}
	if d.Verb == Hold {
		now.text += r.Now().Truncate(announce.RepeatEvery).String()
	}
	before := r.reported.replace(w.Key, now)
	if d.Verb != RollOut && before == now {
		return
	}
	level := d.level()
	if d.Verb == Wait && before.reason == d.Reason {
		level = 1
	}
	if !got.Observation.Entry.PendingSince.IsZero() && d.PendingSince.IsZero() && d.Verb != Wait {
		level = 0 // the wait is over, whatever ended it
	}
	// The time is that after the patch, which may have taken long.
	r.metrics.count(w, d, r.Now())
	if d.Verb == RollOut || d.Reason == input.Evicted {
		r.reported.addRollout(w.Key, r.Now())
	}
	if log := r.Log.V(level); log.Enabled() {
		log.Info("decided", "workload", w.Key.Log(), "verb", string(d.Verb), "reason", string(d.Reason), "message", d.Message)
	}
	for _, e := range eventsFor(w, d, func() string { return r.advice(got) }) {
		r.Announcer.Announce(e)
	}
}

// advice explains what a user can do about a revert.
func (r *Reconciler) advice(got Gathered) string {
	return r.Advice(got.Workload, slices.ContainsFunc(got.Observation.Findings, func(f input.Finding) bool {
		_, back := f.BarredFor(input.Undone)
		return back && f.Live
	}))
}

// warn reports once each probable mistake that isn't a reason to stop. Not every program may write
// events, so the log contains the same text.
func (r *Reconciler) warn(w *kube.Workload, in Observation) {
	events := warnings(w, in)
	texts := make([]string, len(events))
	for i, e := range events {
		texts[i] = e.Note
	}
	before, isNew := r.reported.replaceWarnings(w.Key, texts)
	if !isNew {
		return
	}
	known := func(e announce.Event) bool { return slices.Contains(before, e.Note) }
	fresh := slices.DeleteFunc(slices.Clone(events), known)
	for _, e := range fresh {
		if e.Reason == string(input.InvalidAnnotation) || e.Reason == string(input.TooManyKeys) {
			r.metrics.countInvalid(w, e.Reason)
		}
	}
	for _, e := range joined(fresh) {
		level := 0
		if slices.ContainsFunc(in.Warnings, func(about input.Warning) bool { return about.Shared && about.Text == e.Note }) {
			level = 1
		}
		r.Log.V(level).Info("warns", "workload", w.Key.Log(), "reason", e.Reason, "message", announce.ShortNote(e.Note))
	}
	for _, e := range joined(events) {
		r.Announcer.Announce(e)
	}
}

// level is 0 for decisions that users want to see and 1 for decisions to do nothing.
func (d Decision) level() int {
	switch d.Verb {
	case Wait:
		if d.Reason == input.GenerationNotObserved {
			return 1
		}
		return 0
	case RollOut, Evict, Refresh, Observe, Hold:
		return 0
	case Ignore, Leave, Remember:
	}
	if d.isMistake() || d.Reason == input.DeliveredByRollout || d.Reason == input.Undone || d.Reason == input.Released || d.Reason == input.Reloaded || d.Reason == input.Missing {
		return 0
	}
	return 1
}

// ForgetNamespaces drops the counts of namespaces that are not known.
func (r *Reconciler) ForgetNamespaces(known func(namespace string) bool) {
	monitoring.DropNamespaces(known, r.metrics.reloads, r.metrics.invalid, r.metrics.delivered)
}

// forgetGone drops everything about a workload that is certainly gone, and returns when
// to check again. When the workload is only no longer watched, because its namespace left
// the selector, its entry stays, and reports start again when it is back.
func (r *Reconciler) forgetGone(key kube.Key) (time.Duration, error) {
	r.reported.forget(key)
	r.conflicts.Forget(key)
	r.spreads.report(key, nil, false)
	for _, family := range r.Families {
		family.Drop(key)
	}
	if !r.Cluster.Lists(key) {
		return 0, nil
	}
	e, ok := r.Records.Entry(key)
	now := r.Now()
	switch {
	case !ok, r.Revisions == nil, len(e.Inputs) == 0, r.gatherer.isOver(e), r.Cluster.LacksNamespace(key.Namespace):
		r.Records.Forget(key)
		return 0, nil
	case e.GoneAt.IsZero() || e.GoneAt.After(now):
		e = e.Clone()
		e.GoneAt = now
		return goneFor, r.Records.Put(key, e)
	}
	return e.GoneAt.Add(goneFor).Sub(now), nil
}
