// Package histories generates sequences of actions on a workload and its sources, and knows
// which outcomes the rules in docs/reference/reload.md allow.
//
// A history comes from a seed, so a failure can be repeated. The model (model.go) reads the
// writes that the API server stored and is independent of the product's code. The tests in
// this directory play histories to the product's decisions in a simulated cluster, and to
// the built controller on a real control plane.
package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Verb is the kind of an action.
type Verb string

// The verbs.
const (
	// Change sets a source to a content that it never had, ChangeBack to the previous one. Both
	// create a source that does not exist.
	Change     Verb = "change"
	ChangeBack Verb = "change back"
	Remove     Verb = "remove"
	// Restore recreates a source with its last content, but without its hold.
	Restore Verb = "restore"
	// HoldSource and FreeSource add and remove a source's hold.
	HoldSource Verb = "hold"
	FreeSource Verb = "free"

	// Undo restores the template of an earlier revision, or of a later one after an undo, with
	// that revision's annotations, as kubectl does.
	Undo Verb = "undo"
	// Rollout is another writer's template change. Strip is one that removes Lockstep's
	// annotation.
	Rollout Verb = "another writer's rollout"
	Strip   Verb = "strip our annotation"
	Pause   Verb = "pause"
	Resume  Verb = "resume"
	Hold    Verb = "hold the workload"
	Free    Verb = "free the workload"
	Release Verb = "release"
	Scale   Verb = "scale"
	// Leave removes the annotation that makes Lockstep follow the workload, Refuse sets it to
	// "never", and Ask restores it. Seeds don't generate these three, or Restore.
	Leave  Verb = "leave"
	Refuse Verb = "refuse"
	Ask    Verb = "ask"

	// Abort makes pods from the stable revision again, Retry ends that, and Promote makes the
	// canary the stable one. All apply to a Rollout that isn't paused by its spec.
	Abort   Verb = "abort"
	Retry   Verb = "retry"
	Promote Verb = "promote"

	// Orphan deletes the workload and leaves its revisions and pods, Delete deletes them too.
	// Make recreates the workload as it was, from its manifest after a Delete.
	Orphan Verb = "orphan"
	Delete Verb = "delete"
	Make   Verb = "make again"

	// Kill ends Lockstep without a warning, KillAfterPatch right after the API server has
	// accepted its next patch, before Lockstep writes the record.
	Kill           Verb = "kill -9"
	KillAfterPatch Verb = "kill -9 after the next patch"
	Start          Verb = "start"
	// Upgrade ends Lockstep like Kill. The next process computes template digests differently,
	// or the API server sets other defaults. It requires Options.Upgrades.
	Upgrade Verb = "upgrade"
	// Gap ends the watches. Look starts them again, with a list.
	Gap  Verb = "watch gap"
	Look Verb = "end of the gap"
	// Busy keeps Lockstep from deciding until the next settlement, while its watches continue.
	// Late delays the source watches by two seconds until then. Seeds don't generate these.
	Busy Verb = "no look"
	Late Verb = "sources are seen late"
	// Later lets enough time pass for the record of a deleted workload to expire.
	Later Verb = "11 minutes pass"

	// Settle waits until Lockstep has decided on everything.
	Settle Verb = "settle"
)

// The sources of the workload.
const (
	ConfigMap = "configmap/app"
	Secret    = "secret/db"
)

// Action is one step of a history.
type Action struct {
	Verb Verb
	// Source is the affected source, empty for actions on the workload.
	Source string
	// Revision selects the revision for an undo: 0 is the latest.
	Revision int
	// On is the affected workload or namespace of a fleet: "shop/a" or "shop".
	On string
}

// String is the action in readable form.
func (a Action) String() string {
	switch {
	case a.On != "":
		return strings.Join(strings.Fields(fmt.Sprintf("%s %s on %s", a.Verb, a.Source, a.On)), " ")
	case a.Source != "":
		return string(a.Verb) + " " + a.Source
	case a.Verb == Undo:
		return fmt.Sprintf("undo, to choice %d", a.Revision)
	}
	return string(a.Verb)
}

// History is a sequence of actions.
type History struct {
	Seed    uint64
	Actions []Action
	// Canary is true when the workload is an Argo Rollout whose canary waits for a promotion,
	// Stateful when it is a StatefulSet. Otherwise it is a Deployment.
	Canary, Stateful bool
	// Fleet is how Lockstep treats the many workloads of a fleet.
	Fleet Fleet
}

// String is the history in readable form, one action per line.
func (h History) String() string {
	lines := make([]string, len(h.Actions))
	for i, a := range h.Actions {
		lines[i] = fmt.Sprintf("%3d  %s", i, a)
	}
	return strings.Join(lines, "\n")
}

// Reduce removes the actions of a failing history that don't matter to the failure. An
// action may stop mattering once others are removed, so it starts again after each pass.
func Reduce(h History, fails func(History) bool) History {
	before := len(h.Actions)
	for size := len(h.Actions) / 2; size > 0; size /= 2 {
		for i := 1; i+size <= len(h.Actions); { // the first settlement stays
			shorter := h
			shorter.Actions = slices.Concat(h.Actions[:i], h.Actions[i+size:])
			if fails(shorter) {
				h = shorter
			} else {
				i += size
			}
		}
	}
	if len(h.Actions) < before {
		return Reduce(h, fails)
	}
	return h
}

// generator draws actions that can happen after those before them.
type generator struct {
	random *rand.Rand
	// The state after the actions so far.
	down, gap, gone, armed bool
	paused, held, aborted  bool
	removed, heldSource    map[string]bool

	canary, stateful, upgrades bool
}

// Options of a history.
type Options struct {
	// Length is the number of actions, without those that end the history.
	Length int
	// Without are verbs that must not occur.
	Without []Verb
	// Canary and Stateful are set in the history.
	Canary, Stateful bool
	// Upgrades is true when Upgrade may occur.
	Upgrades bool
}

// New generates the history of a seed. It ends with Lockstep running and everything settled:
// first as it is, then without holds and pauses, then with everything accepted.
func New(seed uint64, o Options) History {
	g := &generator{random: rand.New(rand.NewPCG(seed, 0)), removed: map[string]bool{}, heldSource: map[string]bool{}, canary: o.Canary, stateful: o.Stateful, upgrades: o.Upgrades}
	h := History{Seed: seed, Actions: []Action{{Verb: Settle}}, Canary: o.Canary, Stateful: o.Stateful}
	without := map[Verb]bool{}
	for _, v := range o.Without {
		without[v] = true
	}
	for len(h.Actions) <= o.Length {
		a := g.draw()
		if without[a.Verb] {
			continue
		}
		g.note(a)
		h.Actions = append(h.Actions, a)
		if g.canSettle() && g.random.IntN(2) == 0 {
			h.Actions = append(h.Actions, Action{Verb: Settle})
		}
	}
	h.Actions = append(h.Actions, g.end()...)
	return h
}

// choice is an action and its relative weight.
type choice struct {
	action Action
	weight int
}

func (g *generator) draw() Action {
	choices := append(g.aboutSources(), g.aboutLockstep()...)
	if g.gone {
		choices = append(choices, choice{Action{Verb: Make}, 40}, choice{Action{Verb: Later}, 3})
	} else {
		choices = append(choices, g.aboutWorkload()...)
	}
	return pick(g.random, choices)
}

// pick draws one of the choices.
func pick(random *rand.Rand, choices []choice) Action {
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := random.IntN(total)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.action
		}
	}
	return Action{Verb: Settle}
}

func (g *generator) aboutSources() []choice {
	var all []choice
	for _, source := range []string{ConfigMap, Secret} {
		all = append(all, choice{Action{Verb: Change, Source: source}, 12}, choice{Action{Verb: ChangeBack, Source: source}, 5})
		if g.removed[source] {
			continue
		}
		all = append(all, choice{Action{Verb: Remove, Source: source}, 1})
		if g.heldSource[source] {
			all = append(all, choice{Action{Verb: FreeSource, Source: source}, 5})
		} else {
			all = append(all, choice{Action{Verb: HoldSource, Source: source}, 2})
		}
	}
	return all
}

func (g *generator) aboutLockstep() []choice {
	switch {
	case g.down:
		return []choice{{Action{Verb: Start}, 25}}
	case g.gap:
		return []choice{{Action{Verb: Look}, 25}}
	}
	all := []choice{{Action{Verb: Kill}, 4}, {Action{Verb: Gap}, 4}}
	if !g.armed {
		all = append(all, choice{Action{Verb: KillAfterPatch}, 4})
	}
	if g.upgrades {
		all = append(all, choice{Action{Verb: Upgrade}, 4})
	}
	return all
}

func (g *generator) aboutWorkload() []choice {
	all := []choice{
		{Action{Verb: Undo, Revision: g.random.IntN(3) * g.random.IntN(2)}, 15},
		{Action{Verb: Rollout}, 6},
		{Action{Verb: Strip}, 4},
		{Action{Verb: Release}, 4},
		{Action{Verb: Scale}, 2},
		{Action{Verb: Orphan}, 2},
		{Action{Verb: Delete}, 1},
	}
	switch {
	case g.paused:
		all = append(all, choice{Action{Verb: Resume}, 12})
	case !g.stateful: // a StatefulSet has no such field
		all = append(all, choice{Action{Verb: Pause}, 3})
	}
	if g.held {
		all = append(all, choice{Action{Verb: Free}, 8})
	} else {
		all = append(all, choice{Action{Verb: Hold}, 3})
	}
	if g.canary && !g.paused {
		all = append(all, g.aboutCanary()...)
	}
	return all
}

func (g *generator) aboutCanary() []choice {
	promote := choice{Action{Verb: Promote}, 8}
	if g.aborted {
		return []choice{promote, {Action{Verb: Retry}, 10}}
	}
	return []choice{promote, {Action{Verb: Abort}, 15}}
}

// note tracks which actions are possible next.
func (g *generator) note(a Action) {
	switch a.Verb {
	case Change, ChangeBack:
		if g.removed[a.Source] {
			g.removed[a.Source], g.heldSource[a.Source] = false, false
		}
	case Remove:
		g.removed[a.Source] = true
	case HoldSource, FreeSource:
		g.heldSource[a.Source] = a.Verb == HoldSource
	case Pause, Resume:
		g.paused = a.Verb == Pause
	case Hold, Free:
		g.held = a.Verb == Hold
	case Orphan, Delete, Make:
		g.gone, g.aborted = a.Verb != Make, false
	case Kill, Upgrade, Start:
		g.down, g.armed = a.Verb != Start, false
	case KillAfterPatch:
		g.armed = true
	case Gap, Look:
		g.gap = a.Verb == Gap
	case Undo: // with that revision's annotations
		g.held = g.held && (g.canary || g.stateful)
		g.aborted = false
	case Abort:
		g.aborted = true
	case Retry, Promote, Rollout, Strip:
		g.aborted = false
	default: // the rest doesn't change what is possible
	}
}

// canSettle reports whether Lockstep can see everything. A process that is about to be
// killed settles in its own way: it ends, or has nothing to patch.
func (g *generator) canSettle() bool {
	return !g.down && !g.gap
}

// end returns the actions that end a history.
func (g *generator) end() []Action {
	var all []Action
	add := func(verbs ...Verb) {
		for _, v := range verbs {
			all = append(all, Action{Verb: v})
		}
	}
	if g.gap {
		add(Look)
	}
	if g.gone {
		add(Make)
	}
	add(Start, Settle, Resume, Free)
	all = append(all, Action{Verb: FreeSource, Source: ConfigMap}, Action{Verb: FreeSource, Source: Secret})
	add(Settle, Start, Settle, Release, Settle, Start, Settle)
	return all
}
