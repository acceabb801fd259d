package rollouts

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Gather reads everything that the decision on a workload depends on. The workload is nil
// when it doesn't exist. For a workload that is being deleted nothing else is gathered.
func (g *Gatherer) Gather(ctx context.Context, key kube.Key) (Gathered, error) {
	if g.Read != nil {
		if err := g.Read(ctx); err != nil {
			return Gathered{}, err
		}
	}
	w, ok := g.View.Workload(key)
	if !ok || w.Deleting {
		g.waiting.Delete(key)
		return Gathered{Workload: w}, nil
	}
	w, other := g.own(w)
	p := &past{workload: w, request: g.Revisions, starts: g.Starts, waiting: &g.waiting}
	known, notActed, err := g.entry(ctx, w, p.ask)
	if err != nil {
		return Gathered{Workload: w}, fmt.Errorf("find out whether %s took over the pods of another: %w", key, err)
	}
	got := Gathered{Workload: w, Observation: Observation{
		Intent: g.intent(w),
		Entry:  known,
		State: WorkloadState{
			NoTemplate:        w.Problem,
			TooLarge:          w.Excess,
			StartsPods:        w.Kind.StartsPods(),
			Shown:             w.Shown,
			Unrolled:          w.IsUnrolled(),
			Replicas:          w.Replicas,
			OtherInstallation: other, TemplateBy: w.TemplateBy,
		},
		Pods:     PodState{Off: g.PodsOff},
		MaxDelay: g.MaxDelay,
		Now:      g.Now(),
		Estimate: g.Read != nil,
		History: History{
			NotActed:  notActed,
			MarksOnly: g.Revisions == nil,
		},
	}}
	if g.Revisions != nil || g.Read != nil { // a drop-in has neither
		got.Observation.State.Rollout = w.Status.Status
		if w.Template().IsOlder(got.Observation.Entry.Template) {
			got.Observation.State.Rollout.Observed = false // the cache doesn't contain our own patch yet
		}
		got.Observation.State.Health = health.Of(w.Status.Status, w.Stalled(got.Observation.Now))
	}
	g.turn(w, &got.Observation)
	if len(got.Observation.Intent.Mistakes.Problems) > 0 || got.Observation.Intent.Mistakes.TooMany != "" {
		return got, g.judgeHold(ctx, w, &got.Observation, p)
	}
	if err := g.assess(ctx, w, &got.Observation, p); err != nil {
		return got, fmt.Errorf("gather the inputs of %s: %w", key, err)
	}
	g.gates(w, &got.Observation)
	g.spread(&got.Observation)
	warnFailed(&got.Observation)
	if needsPast(w, got.Observation) {
		if _, err := p.ask(ctx, timeline.FromRevisions); err != nil {
			return got, fmt.Errorf("find out which inputs of %s were reverted: %w", key, err)
		}
	}
	p.close(len(withStanding(got.Observation.Findings, input.Due)) > 0)
	got.Observation.History.Past = p.known
	got.Observation = judge(w, got.Observation)
	if g.Pods != nil && got.Observation.NeedsPods() {
		got.Observation.Pods.All, got.Observation.Pods.Problem = g.Pods(ctx, w)
	}
	if g.Stopped != nil { // read last: queries of a busy API server may take long
		got.Observation.Gates.StoppedBy, got.Observation.Gates.Stopped = g.Stopped(key.Namespace)
	}
	return got, nil
}

// judgeHold judges the workload's hold, and nothing else, while a user has to correct something. A
// later look couldn't: by then, another rollout may have replaced the template with which the
// annotation disappeared.
func (g *Gatherer) judgeHold(ctx context.Context, w *kube.Workload, in *Observation, p *past) error {
	in.Template.Hold = in.undoneHold()
	if !in.lostHoldTo(w.Template()) {
		return nil
	}
	if needsPast(w, *in) {
		var err error
		if in.History.Past, err = p.ask(ctx, timeline.FromRevisions); err != nil {
			return fmt.Errorf("find out whether an undo removed the hold on %s: %w", w.Key, err)
		}
	}
	*in = judge(w, *in)
	return nil
}

// assess queries every family.
func (g *Gatherer) assess(ctx context.Context, w *kube.Workload, in *Observation, p *past) error {
	for _, family := range g.Families {
		in.Kinds = append(in.Kinds, family.Kinds()...)
		all, err := family.Assess(ctx, w, in.Intent, in.Entry, p.ask)
		if err != nil {
			return err
		}
		in.Findings = append(in.Findings, all.Findings...)
		in.Warnings = append(in.Warnings, all.Warnings...)
		in.TooMany = cmp.Or(in.TooMany, all.TooMany)
		in.Searched = append(in.Searched, all.Searched...)
		in.AwaitsStatus = in.AwaitsStatus || all.AwaitsStatus
		in.Recheck = sooner(in.Recheck, all.Recheck)
	}
	return nil
}
