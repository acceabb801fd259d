package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Family is one kind of inputs, or a few that are alike.
type Family interface {
	// Kinds are the kinds of inputs that the family knows. What is on record of other
	// kinds is left as it is.
	Kinds() []input.Kind
	// Assess compares what the workload was last given with what exists now. An error
	// ends the look at the workload; what only this family cannot read is a finding with
	// the reason Unreadable.
	Assess(ctx context.Context, w *kube.Workload, intent settings.Intent, given record.Entry) (input.Assessment, error)
	// Drop forgets what was asked about a workload that is gone.
	Drop(kube.Key)
}

// View is what is known of the cluster without asking it: the controller's cache, or
// what a command has read.
type View interface {
	Workload(kube.Key) (*kube.Workload, bool)
	Namespace(name string) (*kube.Namespace, bool)
}

// Gatherer reads everything that a decision depends on. The controller and the command
// line use the same one; they differ in the view.
type Gatherer struct {
	Vocabulary settings.Vocabulary
	View       View
	Families   []Family
	// Entry is what is on record of a workload.
	Entry func(kube.Key) (record.Entry, bool)
	// Full says why the record has no room for an entry of that size, empty when it has.
	// It is nil where nothing is put on record.
	Full func(key kube.Key, room int) string
	// Pods lists a workload's pods, where a decision depends on them. It is nil when
	// the strategies that work on pods are switched off, and PodsOff says why.
	Pods    func(context.Context, *kube.Workload) ([]pods.Pod, error)
	PodsOff string
	// Revisions asks the API server for a workload's revisions, to find out what other
	// writers took back. It is nil where that is not asked.
	Revisions func(context.Context, *kube.Workload) ([]timeline.Revision, error)
	// Installation is the namespace in which this one keeps its record, empty where that
	// does not matter.
	Installation string
	// MaxDelay bounds the quiet window.
	MaxDelay time.Duration
	Now      func() time.Time
	// Read, when it is set, brings the view up to date before each look. What was read
	// and not followed has no bounds and no times of changes, so that the decision is
	// an estimate.
	Read func(context.Context) error
}

// Gathered is a workload and what the decision on it depends on.
type Gathered struct {
	Workload *kube.Workload
	Input    Input
}

// Gather reads what the decision on a workload depends on. The workload is nil when
// there is none; of one that is being deleted nothing else is gathered.
func (g *Gatherer) Gather(ctx context.Context, key kube.Key) (Gathered, error) {
	if g.Read != nil {
		if err := g.Read(ctx); err != nil {
			return Gathered{}, err
		}
	}
	w, ok := g.View.Workload(key)
	if !ok || w.Deleting {
		return Gathered{Workload: w}, nil
	}
	w, other := g.own(w)
	known, undecided, err := g.entry(ctx, w)
	if err != nil {
		return Gathered{Workload: w}, fmt.Errorf("find out whether %s took over the pods of another: %w", key, err)
	}
	got := Gathered{Workload: w, Input: Input{
		Intent:     g.intent(w),
		Entry:      known,
		NoTemplate: w.Problem,
		PodsOff:    g.PodsOff,
		StartsPods: w.Kind.StartsPods(),
		Shown:      w.Shown,
		Unrolled:   w.IsUnrolled(),
		Replicas:   w.Replicas,
		MaxDelay:   g.MaxDelay,
		Now:        g.Now(),
		Estimate:   g.Read != nil,

		OtherInstallation: other,
	}}
	if undecided {
		return got.unlessNotActed(timeline.ErrNotActed)
	}
	if g.Revisions != nil || g.Read != nil { // a drop-in has neither
		got.Input.Rollout = w.Status.Status
		got.Input.Health = health.Of(w.Status.Status, since(w.MovedAt, got.Input.Now))
	}
	if len(got.Input.Intent.Problems) > 0 || got.Input.Intent.TooMany != "" {
		return got, nil
	}
	if err := g.assess(ctx, w, &got.Input); err != nil {
		return got.unlessNotActed(fmt.Errorf("gather the inputs of %s: %w", key, err))
	}
	if err := g.judge(ctx, w, &got.Input); err != nil {
		return got.unlessNotActed(fmt.Errorf("find out what was taken back of %s: %w", key, err))
	}
	if g.Full != nil && len(got.Input.Findings) > 0 && got.Input.excess() == "" {
		got.Input.RecordFull = g.Full(key, got.Input.room())
	}
	if g.Pods != nil && got.Input.NeedsPods() {
		got.Input.Pods, got.Input.PodsProblem = g.Pods(ctx, w)
	}
	return got, nil
}

// unlessNotActed is what was gathered and the error; one that says that the workload's
// controller has not acted yet is a reason to wait instead.
func (got Gathered) unlessNotActed(err error) (Gathered, error) {
	if !errors.Is(err, timeline.ErrNotActed) {
		return got, err
	}
	got.Input.Findings = []input.Finding{{Reason: input.GenerationNotObserved}}
	return got, nil
}

// assess asks every family.
func (g *Gatherer) assess(ctx context.Context, w *kube.Workload, in *Input) error {
	for _, family := range g.Families {
		in.Kinds = append(in.Kinds, family.Kinds()...)
		all, err := family.Assess(ctx, w, in.Intent, in.Entry)
		if err != nil {
			return err
		}
		in.Findings = append(in.Findings, all.Findings...)
		in.Warnings = append(in.Warnings, all.Warnings...)
		in.Searched = append(in.Searched, all.Searched...)
		in.AwaitsStatus = in.AwaitsStatus || all.AwaitsStatus
		in.Recheck = sooner(in.Recheck, all.Recheck)
	}
	return nil
}

func (g *Gatherer) intent(w *kube.Workload) settings.Intent {
	var defaults map[string]string
	if ns, ok := g.View.Namespace(w.Key.Namespace); ok {
		defaults = ns.Annotations
	}
	return g.Vocabulary.Intent(w.Annotations, defaults)
}

// since is how long ago something was, zero for what never was.
func since(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return now.Sub(at)
}
