package rollouts

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// turn finds out how the rollout on trial stands, and whether another one could prove anything.
func (g *Gatherer) turn(w *kube.Workload, in *Observation) {
	if g.Safety == (Safety{}) {
		return
	}
	p, stalled := w.Progress(in.Now), w.Stalled(in.Now)
	if in.Entry.Turn.Template != "" && (w.RolledOutAt.IsZero() || !in.Entry.Eviction.Since.IsZero()) {
		// Evictions replace each pod by itself, so it counts since when one is missing.
		p.ProgressedAt = later(p.ProgressedAt, p.StateSince)
		stalled = in.Now.Sub(p.StateSince)
		p.Health = health.Of(w.TemplateStatus(), stalled).State
	}
	proves := p.HasPods && !in.State.StartsPods && !in.State.Rollout.RollsByHand()
	in.Turn = TurnState{Tracked: true, Proves: proves, Able: proves && p.Health == health.Done, Serves: w.Status.Counts.Available > 0, Template: p.Template}
	in.Turn.Healthy = in.Turn.Able && p.IsHealthy(g.Safety.Settle)
	if in.Turn.Able && !in.Turn.Healthy {
		in.Turn.Settles = g.Safety.Settle - in.Now.Sub(p.StateSince)
	}
	open := in.Entry.Turn
	if open.Template == "" {
		// A new process doesn't know since when the workload is available. It was when the
		// change was first seen.
		in.Turn.Healthy = in.Turn.Healthy || in.Turn.Able && open.Healthy && in.Now.Sub(in.Entry.PendingSince) >= g.Safety.Settle
		return
	}
	if w.Template().IsOlder(in.Entry.Template) {
		return // the cache doesn't contain our own patch yet
	}
	var recheck time.Duration
	in.Turn.End, recheck = open.Judge(p, g.Safety.patience())
	switch in.Turn.End {
	case spread.Passed:
		if !in.Entry.Eviction.Since.IsZero() {
			in.Turn.End, recheck = spread.Open, evictionCheck // not every pod was replaced
		}
	case spread.Open, spread.Freed:
		if !open.Freed { // one that failed and recovered has to stay available first
			in.Turn.Healthy = open.Healthy
		}
		recheck = sooner(recheck, w.Status.Left(stalled))
	case spread.Failing, spread.Over:
	}
	in.Recheck = sooner(in.Recheck, recheck)
}

// spread bars the versions that failed elsewhere.
func (g *Gatherer) spread(in *Observation) {
	if g.Failure == nil || g.Safety.StopAfter == 0 {
		return
	}
	for i, f := range in.Findings {
		if f.Standing != input.Due || f.Change.IsZero() || f.Reason == input.PutBack || in.isResumed(f) {
			continue
		}
		if why := spread.Stopped(g.Failure(f.Change).On, g.Safety.StopAfter); why != "" {
			in.Findings[i].Bars = append(slices.Clone(f.Bars), input.Bar{Reason: input.VersionStopped, By: why})
		}
	}
}

// warnFailed reports that the rollout of a source's version failed and that it stays. An image
// has a report of its own, and if an earlier one is restored, a further rollout shows how it ends.
func warnFailed(in *Observation) {
	if in.Turn.End != spread.Failing || slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return f.Reason == input.PutBack }) {
		return
	}
	for _, f := range in.Findings {
		if f.ID.IsSource() && in.isOnTrial(f) {
			in.Warnings = append(in.Warnings, input.Warning{Reason: input.RolloutFailed, About: f.ID, Change: f.Change, Text: fmt.Sprintf(
				"the rollout of %s %s failed (%s), and Lockstep doesn't revert it", f.ID, f.Shows.Digest, in.State.Health.Message)})
		}
	}
}

// isOnTrial reports whether the rollout on trial delivered the current version of an input.
func (in Observation) isOnTrial(f input.Finding) bool {
	isDue := f.Standing == input.Due && f.Reason != input.PutBack
	return !isDue && in.Entry.Inputs[f.ID].Stage == record.StageRolling || evicts(in.Entry, f.Change)
}

// isResumed reports whether a user wants the input's version to be delivered even though it was
// stopped.
func (in Observation) isResumed(f input.Finding) bool {
	return isResumed(f, f.Pace.Resumed) || isResumed(f, in.Intent.Resume)
}

func isResumed(f input.Finding, versions []string) bool {
	return slices.Contains(versions, record.Published(f.Change).Version) || slices.Contains(versions, f.Shows.Digest)
}
