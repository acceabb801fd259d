package rollouts

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// budgetCheck is how long to wait after a disruption budget refused an eviction.
const budgetCheck = 10 * time.Second

// act carries the decision out: at most one write to the workload, and the record after
// it. It returns when to check again.
func (r *Reconciler) act(ctx context.Context, got Gathered, d Decision) (time.Duration, error) {
	w, in := got.Workload, got.Observation
	switch {
	case d.isMistake():
		return d.Recheck, r.noteMistake(w, in, d)
	case d.Reason == input.GenerationNotObserved:
		return d.Recheck, r.note(w, in, d)
	case d.Verb == Ignore:
		// Unless the workload refuses, its namespace may still ask for it, and then the
		// delivered versions are needed.
		if r.Cluster.KnowsNamespaces() || in.Intent.Mode == settings.Never {
			return d.Recheck, r.forget(w, in)
		}
		return d.Recheck, r.leave(w, in)
	}
	o := outcome{decision: d, findings: in.Findings, kinds: in.Kinds, searched: in.Searched, template: in.Template, unrolled: in.State.Unrolled, release: in.Intent.Release, hold: in.holdOnRecord(), rollout: in.State.Rollout, healthy: in.State.Health.State == health.Done, before: before{w.Shown, w.WrittenAt, w.RolledOutAt, w.StartsFrom(), in.Turn}}
	entry, recheck := in.Entry, d.Recheck
	order := in.order(d)
	err := in.Pods.Problem
	switch {
	case err != nil:
	case d.Verb == RollOut:
		o.rolledOut, err = r.rollOut(ctx, w, order)
		o.from = w.Origin(o.rolledOut.At)
		entry.Again = in.Gates.Again
	case d.Verb == Refresh:
		err = r.refresh(ctx, w, order.Shown(w.Shown))
	case d.Verb == Evict && d.Eviction.Begin:
		entry, err = r.beginEviction(ctx, w, o.begun(in.Entry), d)
	case d.Verb == Evict && d.Eviction.Victim != nil:
		recheck, err = r.evict(ctx, *d.Eviction.Victim, d.Recheck)
	}
	if d.isOvertaken(err) {
		err = r.overtaken(w.Key, err)
	}
	if err == nil && d.begins() {
		for _, c := range seriesOf(w.Key.Namespace, d.Due) {
			r.gatherer.paces.begin(c, in.Now)
		}
	}
	o.recorded = d.onRecord(in.told(d.Due), in.Now, recheck)
	if o.stillWaits = in.stillWaits(d); o.stillWaits {
		o.recorded = in.Entry.Decision
	}
	if err != nil {
		// A due change stays due, even for the next process.
		entry, o = in.Entry, o.failed(in)
		o.recorded = d.failedOnRecord(err, in.Entry.Decision, in.Now)
	}
	if next := remember(entry, o); !next.Equal(in.Entry) {
		err = cmp.Or(err, r.Records.Put(w.Key, next))
		if d.Verb == Remember && awaits(next) && !awaits(in.Entry) {
			recheck = sooner(recheck, time.Millisecond) // no event comes, and the decision is to report the wait
		}
	}
	return recheck, err
}

// awaits reports whether pods of an older revision keep the workload from running an input on record.
func awaits(e record.Entry) bool {
	for _, given := range e.Inputs {
		if given.Awaits {
			return true
		}
	}
	return false
}

// leave records that no known setting asks for the workload.
func (r *Reconciler) leave(w *kube.Workload, in Observation) error {
	if len(in.Entry.Inputs) == 0 && in.Entry.Foreign.IsEmpty() && !in.Entry.Decision.IsZero() {
		r.Records.Forget(w.Key) // only a mistake was on record
		return nil
	}
	if len(in.Entry.Inputs) == 0 || in.Entry.Left {
		return nil
	}
	e := in.Entry.Clone()
	e.Left, e.Decision = true, record.Decision{}
	return r.Records.Put(w.Key, e)
}

// forget drops the entry of a workload that isn't followed. The record of inputs that no
// family here knows stays, unless the workload refuses: a program that knows them may run
// again later.
func (r *Reconciler) forget(w *kube.Workload, in Observation) error {
	rest := without(in.Entry, in.Kinds, false)
	rest.Decision = record.Decision{}
	if in.Intent.Mode == settings.Never || len(rest.Inputs) == 0 && rest.Foreign.IsEmpty() {
		r.Records.Forget(w.Key)
		return nil
	}
	if rest.Equal(in.Entry) {
		return nil
	}
	return r.Records.Put(w.Key, rest)
}

// beginEviction puts the series on record with the API server's time, which pods are
// compared with: our clock may be off. It doesn't evict a pod in the same turn. The API
// server's times have a resolution of a second, so a pod that replaces one evicted right
// now could carry the time of the decision, and would be evicted too.
func (r *Reconciler) beginEviction(ctx context.Context, w *kube.Workload, e record.Entry, d Decision) (record.Entry, error) {
	e.Eviction, e.PendingSince = record.Eviction{For: d.Eviction.For, Pods: d.Eviction.Pods}, d.PendingSince
	var err error
	e.Eviction.Since, err = r.OnPods.Prompt.PutNow(ctx, w.Key, e)
	return e, err
}

// evict evicts one pod and returns when to check again. That check notices a pod that is
// gone or was replaced.
func (r *Reconciler) evict(ctx context.Context, victim pods.Pod, recheck time.Duration) (time.Duration, error) {
	err := r.OnPods.Pods.Evict(ctx, victim)
	switch {
	case apierrors.IsTooManyRequests(err):
		return budgetCheck, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return recheck, nil
	}
	return recheck, err
}

// refresh touches every pod that doesn't show the current versions. Pods that start later
// mount the new content by themselves.
func (r *Reconciler) refresh(ctx context.Context, w *kube.Workload, shown input.Shown) error {
	all, err := r.OnPods.Pods.List(ctx, w)
	if err != nil {
		return err
	}
	var failed []error
	marks := shown.Marks()
	for _, p := range all {
		if p.Terminating || maps.Equal(p.Shown, marks) {
			continue
		}
		if r.stopped(w.Key.Namespace) {
			return errors.Join(append(failed, errors.New("stopped by an operator before all pods were refreshed"))...)
		}
		if err := r.OnPods.Pods.Touch(ctx, p, shown.String()); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
