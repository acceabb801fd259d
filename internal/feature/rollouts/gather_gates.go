package rollouts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/damping"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// gates finds out what lets a due change through later. A setting that isn't understood is
// reported and treated as absent.
func (g *Gatherer) gates(w *kube.Workload, in *Observation) {
	g.window(in)
	g.damped(w.Key.Namespace, in)
	g.after(w, in)
	if target := in.Intent.Notify; target != "" && g.NotifyProblem != nil {
		if why := g.NotifyProblem(w.Key.Namespace, target); why != "" {
			in.Intent.Mistakes.Warnings = append(in.Intent.Mistakes.Warnings, settings.NotifyProblem(target, why))
		}
	}
}

// window finds the maintenance window that counts: the most specific one.
func (g *Gatherer) window(in *Observation) {
	placed := in.Intent.Windows
	if g.Safety.Window != "" {
		placed = append(slices.Clip(placed), settings.Placed{On: settings.OnController, Text: g.Safety.Window})
	}
	for _, p := range placed {
		parsed, err := g.windows.parse(p.Text)
		if err == nil {
			in.Gates.Window = WindowState{Text: p.Text, On: p.On.String()}
			_, in.Gates.Window.Opens = parsed.Open(in.Now)
			return
		}
		problems := &in.Intent.Mistakes.Ignored
		if p.On != settings.OnWorkload {
			problems = &in.Intent.Mistakes.Warnings
		}
		*problems = append(*problems, settings.WindowProblem(p.Text, err))
	}
}

// damped finds out whether the workload was rolled out too often, or an input changed too often.
// The record counts from the second rollout in a row on.
func (g *Gatherer) damped(namespace string, in *Observation) {
	policy := g.Safety.damping()
	var state damping.State
	if last := in.Entry.RolledOutAt; !last.IsZero() {
		state = damping.State{Level: max(1, in.Entry.Again), Last: last}
	}
	if next := policy.After(state, in.Now); next.Level > 1 {
		in.Gates.Again = next.Level
	}
	if until := policy.Until(state); until.After(in.Now) {
		in.Gates.Damped = DampedState{Until: until, Why: fmt.Sprintf("it was rolled out %d times in a row", state.Level)}
	}
	if g.paces == nil {
		return
	}
	for _, c := range seriesOf(namespace, withStanding(in.Findings, input.Due)) {
		if until, level := g.paces.until(c); until.After(in.Now) && until.After(in.Gates.Damped.Until) {
			in.Gates.Damped = DampedState{Until: until, Why: fmt.Sprintf("%s changed %d times in a row", c.ID, level)}
		}
	}
}

// after finds the workload that goes first and isn't finished with a change that is due.
func (g *Gatherer) after(w *kube.Workload, in *Observation) {
	if len(in.Intent.After) == 0 || g.Before == nil {
		return
	}
	problem := settings.AfterProblem(in.Intent.After)
	ids, unknown := g.named(w.Key.Namespace, in.Intent.After)
	if unknown != "" {
		problem.Why = fmt.Sprintf("no followed kind is called %q", settings.Shorten(unknown))
		in.Intent.Mistakes.Ignored = append(in.Intent.Mistakes.Ignored, problem)
		return
	}
	cycle, breaks := spread.Cycle(w.Key.ID(), g.goesAfter)
	if len(cycle) > 0 {
		in.Warnings = append(in.Warnings, input.Warning{Reason: input.InvalidAnnotation, Text: fmt.Sprintf(
			"annotation %s: these workloads wait for each other, so the first of them doesn't wait: %s", settings.After, cycleWords(cycle))})
	}
	if breaks {
		return
	}
	if in.Hold() != "" {
		return // it waits for a user, so it isn't the turn of the others yet
	}
	due := changesOf(withStanding(in.Findings, input.Due))
	for i, id := range ids {
		wait, ignored := g.Before(w.Key, id, due, g.isFollowed)
		if wait && in.Gates.After == "" {
			in.Gates.After = in.Intent.After[i]
		}
		if ignored != "" {
			in.Warnings = append(in.Warnings, input.Warning{Reason: input.AfterIgnored, Text: fmt.Sprintf(
				"annotation %s: %s %s, so Lockstep doesn't wait for it", settings.After, in.Intent.After[i], ignored)})
		}
	}
}

// cycleWords names the workloads of a cycle, the one that doesn't wait first.
func cycleWords(cycle []string) string {
	names := slices.Sorted(slices.Values(cycle))
	for i, id := range names {
		names[i] = objectname.OfID(id)
	}
	return settings.Shorten(strings.Join(names, ", "))
}

// goesAfter are the workloads that one waits for, as the record names them.
func (g *Gatherer) goesAfter(id string) []string {
	key, err := kube.ParseID(id)
	if err != nil {
		return nil
	}
	w, ok := g.View.Workload(key)
	if !ok || w.Annotations[settings.After] == "" {
		return nil
	}
	ids, _ := g.named(key.Namespace, g.intent(w).After)
	return ids
}

// named are workloads as the record names them, and the first kind that isn't followed.
func (g *Gatherer) named(namespace string, names []string) (ids []string, unknown string) {
	for _, text := range names {
		called, name, _ := strings.Cut(text, "/")
		kind, known := kube.FindKind(g.Kinds, called)
		if !known {
			return nil, called
		}
		ids = append(ids, kube.Key{GroupKind: kind.GroupKind(), Namespace: namespace, Name: name}.ID())
	}
	return ids, ""
}

// isFollowed reports whether a workload exists and something asks to follow it.
func (g *Gatherer) isFollowed(id string) bool {
	key, err := kube.ParseID(id)
	if err != nil {
		return false
	}
	w, exists := g.View.Workload(key)
	if !exists {
		return false
	}
	if e, recorded := g.Entry(key); recorded && len(e.Inputs) > 0 && !e.Left {
		return true
	}
	intent := g.intent(w)
	return intent.Mode == settings.Follow || len(intent.Images) > 0
}
