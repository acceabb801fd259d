package ask

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// Would is what would happen to a workload.
type Would string

// What can happen to a workload when files are applied.
const (
	WouldRoll           Would = "roll once"
	WouldRollByTemplate Would = "roll by its own template"
	WouldRollTwice      Would = "roll by its own template, and once more"
	WouldEvict          Would = "restart its pods one by one"
	WouldRefresh        Would = "refresh its files"
	WouldWait           Would = "wait"
	WouldNextJob        Would = "load it with its next Job"
	WouldStart          Would = "start"
	WouldFollow         Would = "be followed from now on"
	WouldUnfollow       Would = "stop being followed"
	WouldNothing        Would = "nothing"
	// WouldUnknown is that of a workload that can't be read.
	WouldUnknown Would = "not known"
)

// Plan is what would happen if the files were applied.
type Plan struct {
	Workloads []PlannedWorkload `json:"workloads"`
	Sources   []PlannedSource   `json:"sources"`
	// Partial is true if the plan can't cover a workload: one in the files can't be read, or those of a
	// kind can't be listed that may use a changed object.
	Partial bool `json:"partial,omitempty"`
	// Others is the number of objects of each kind that Lockstep doesn't use.
	Others map[string]int `json:"others,omitempty"`
	// Notes are messages about objects that could not be read, and the assumptions made instead.
	Notes []string `json:"notes,omitempty"`
}

// Restarts reports whether pods of an existing workload are replaced.
func (w Would) Restarts() bool {
	return slices.Contains([]Would{WouldRoll, WouldRollByTemplate, WouldRollTwice, WouldEvict}, w)
}

// PlannedWorkload is what would happen to one workload, and why.
type PlannedWorkload struct {
	Workload  string `json:"workload"`
	Namespace string `json:"namespace"`
	// Would is the effect on the workload, such as "roll once" or "nothing".
	Would Would `json:"would"`
	// Reason is the controller's reason, omitted if the effect isn't known.
	Reason input.Reason `json:"reason,omitempty"`
	// Rule is the page that documents the reason.
	Rule string `json:"rule,omitempty"`
	// Because is the explanation.
	Because string `json:"because"`
	// Estimate is true when the plan contains an assumption, because an object can't be read.
	Estimate bool `json:"estimate,omitempty"`
}

// PlannedSource is what would happen to a ConfigMap or Secret of the files.
type PlannedSource struct {
	Source    string `json:"source"`
	Namespace string `json:"namespace"`
	// Change is the effect of the files on the source, such as "created" or "changed".
	Change Alter `json:"change"`
	// Users is the number of workloads that use or list it.
	Users int `json:"users"`
	// Spread is the way in which it reaches them, omitted when all of them roll at once.
	Spread *PlannedSpread `json:"spread,omitempty"`
}

// Alter is the effect of applying a file on an object.
type Alter string

// The effects.
const (
	Created   Alter = "created"
	Changed   Alter = "changed"
	Unchanged Alter = "unchanged"
	// Refused is a change of an immutable object.
	Refused Alter = "refused"
	// Assumed is a change that isn't visible, because the object cannot be read.
	Assumed Alter = "assumed to change"
)

// rule is where a reason is documented.
func rule(reason input.Reason) string {
	return "docs/reference/reasons.md#" + strings.ToLower(string(reason))
}

// prospect is one workload before and after, as the controller would gather it.
type prospect struct {
	key           kube.Key
	before, after rollouts.Gathered
	// touched are the sources of the workload that the files change.
	touched []input.ID
	// assumed are inputs whose digests aren't meaningful to users, because something was
	// assumed about them.
	assumed []input.ID
	// estimate is true when something else was assumed.
	estimate bool
}

// row reports what would happen to the workload. The decision is the controller's own,
// after the quiet window.
func (p *prospect) row() PlannedWorkload {
	was, will := settled(p.before), settled(p.after)
	row := PlannedWorkload{Workload: p.after.Workload.Kind.Name() + "/" + p.key.Name, Namespace: p.key.Namespace, Reason: will.Reason}
	row.Would, row.Because = p.would(was, will)
	if row.Would == WouldFollow {
		row.Reason = input.Following
	}
	if row.Would == WouldWait && will.Verb != rollouts.Hold && will.Verb != rollouts.Wait {
		row.Reason = p.waitsFor()
	}
	if row.Would == WouldNextJob {
		row.Reason = input.NextJob
	}
	row.Because = p.masked(row.Because)
	row.Rule, row.Estimate = rule(row.Reason), p.estimate || len(p.assumed) > 0
	return row
}

// settled is the decision once the quiet window is over.
func settled(g rollouts.Gathered) rollouts.Decision {
	if g.Workload == nil || g.Workload.Deleting {
		return rollouts.Decision{Verb: rollouts.Ignore, Reason: input.NotFollowed}
	}
	g.Observation.Intent.Quiet = 0
	return rollouts.Decide(g.Observation)
}

func (p *prospect) would(was, will rollouts.Decision) (would Would, because string) {
	own := p.ownRollout()
	switch {
	case p.after.Workload.Deleting:
		return WouldNothing, "it is being deleted"
	case p.before.Workload == nil:
		return WouldStart, p.starts(will)
	case will.Verb == rollouts.RollOut && own:
		return WouldRollTwice, "its template changes, and then, in the order of the files, " + will.Message
	case own && p.rollsByHand():
		return WouldWait, "its template changes, and pods load it only after they are deleted"
	case own && p.after.Observation.State.StartsPods:
		return WouldNextJob, p.templateChange(was, will)
	case own:
		return WouldRollByTemplate, p.templateChange(was, will)
	case p.changesTemplate():
		return WouldWait, "its template changes, and it is paused (spec.paused)" + also(was, will)
	case will.Reason == input.NextJob:
		return WouldNextJob, will.Message
	case isIgnored(was) && !isIgnored(will) && will.Verb == rollouts.Remember:
		return WouldFollow, will.Message + "; the running versions become the baseline"
	case !isIgnored(was) && isIgnored(will):
		return WouldUnfollow, "no annotation enables following it any more"
	}
	return byVerb(will), p.detail(was, will)
}

// byVerb is the effect of a decision when the template doesn't change.
func byVerb(d rollouts.Decision) Would {
	switch d.Verb {
	case rollouts.RollOut:
		if d.Reason == input.AwaitsPods {
			return WouldWait
		}
		return WouldRoll
	case rollouts.Evict:
		return WouldEvict
	case rollouts.Refresh:
		return WouldRefresh
	case rollouts.Hold, rollouts.Wait:
		return WouldWait
	case rollouts.Ignore, rollouts.Leave, rollouts.Remember, rollouts.Observe:
	}
	return WouldNothing
}

// detail explains a decision when the template doesn't change.
func (p *prospect) detail(was, will rollouts.Decision) string {
	text := will.Message
	switch {
	case will.Reason == input.InStep && len(p.touched) > 0:
		text = "no key that it uses changes: " + list(p.touched)
	case will.Reason == input.InStep:
		text = "the files don't change anything that it uses"
	case isIgnored(will):
		text = "no annotation enables following it"
	case will.Verb == rollouts.Observe:
		text = "observe mode: " + text
	case will.Verb == rollouts.RollOut, will.Verb == rollouts.Evict, will.Verb == rollouts.Refresh:
		text += ", after the quiet window"
	}
	if will.Verb == was.Verb && will.Message == was.Message && len(will.Due) > 0 {
		text += "; it is due even without the files"
	}
	return text
}

// starts explains the start of a workload that doesn't exist yet.
func (p *prospect) starts(will rollouts.Decision) string {
	switch {
	case isIgnored(will):
		return "it is new, and no annotation enables following it"
	case will.Verb == rollouts.Remember:
		return "it is new; follows " + will.Message
	}
	return "it is new; " + will.Message
}

// templateChange explains a rollout by the workload's own template.
func (p *prospect) templateChange(was, will rollouts.Decision) string {
	parts := []string{"its template changes"}
	if names := p.newNames(); names != "" {
		parts[0] += ": it names " + names
	}
	for _, f := range p.after.Observation.Findings {
		if f.Reason == input.DeliveredByRollout {
			parts = append(parts, fmt.Sprintf("%s %s -> %s comes with it", f.ID, cmp.Or(f.Delivered.Short(), "unknown"), f.Current.Short()))
		}
	}
	return strings.Join(parts, "; ") + also(was, will)
}

// also describes what else happens to a workload whose template changes.
func also(was, will rollouts.Decision) string {
	switch {
	case will.Verb == rollouts.Hold, will.Verb == rollouts.Wait:
		return "; " + will.Message
	case isIgnored(was) && !isIgnored(will):
		return "; it is followed from now on"
	case !isIgnored(was) && isIgnored(will):
		return "; it is not followed any more"
	case will.Verb == rollouts.Leave && will.Reason != input.InStep:
		return "; " + will.Message
	}
	return ""
}

// newNames are the sources that only the new template names: generated names are new with
// each content.
func (p *prospect) newNames() string {
	var names []input.ID
	for _, ref := range p.after.Workload.Refs {
		if !slices.ContainsFunc(p.before.Workload.Refs, func(old podrefs.Ref) bool { return old.Source == ref.Source }) {
			names = append(names, ref.Source)
		}
	}
	return list(names)
}

func (p *prospect) changesTemplate() bool {
	return p.before.Workload != nil && !p.after.Workload.SameTemplate(p.before.Workload)
}

// ownRollout reports whether the files change the template, and a rollout follows.
func (p *prospect) ownRollout() bool {
	return p.changesTemplate() && !p.after.Workload.Status.Paused
}

func (p *prospect) rollsByHand() bool {
	return p.after.Workload.Status.RollsByHand()
}

// waitsFor is the reason of a template that is not rolled out.
func (p *prospect) waitsFor() input.Reason {
	if p.changesTemplate() && p.after.Workload.Status.Paused {
		return input.Paused
	}
	return input.AwaitsPods
}

// masked hides digests that were computed with another key than the controller's, or for
// assumed content.
func (p *prospect) masked(text string) string {
	for _, f := range p.after.Observation.Findings {
		if slices.Contains(p.assumed, f.ID) {
			for _, v := range []fingerprint.Version{f.Delivered, f.Current} {
				if !v.IsZero() && !v.IsAbsent() {
					text = strings.ReplaceAll(text, v.Short(), "(not visible to you)")
				}
			}
		}
	}
	return strings.ReplaceAll(text, "(not visible to you) -> (not visible to you)", "(not visible to you)")
}

func isIgnored(d rollouts.Decision) bool {
	return d.Reason == input.NotFollowed
}

func list(ids []input.ID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
