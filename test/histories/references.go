package histories

import "math/rand/v2"

// KindOf is the kind of a history's workload.
type KindOf string

// The kinds. A Rollout's canary waits for a promotion. Lent is a Rollout that uses the template of
// a Deployment.
const (
	Deployment  KindOf = "Deployment"
	StatefulSet KindOf = "StatefulSet"
	DaemonSet   KindOf = "DaemonSet"
	CronJob     KindOf = "CronJob"
	OfArgo      KindOf = "Rollout"
	Lent        KindOf = "Rollout with workloadRef"
)

// Kinds are all kinds of workloads in reference histories.
func Kinds() []KindOf { return []KindOf{Deployment, StatefulSet, DaemonSet, CronJob, OfArgo, Lent} }

// HasOnDelete reports whether the pods of that kind can be replaced by hand.
func (k KindOf) HasOnDelete() bool { return k == StatefulSet || k == DaemonSet }

// Sources are those of reference histories.
func Sources() []string {
	return []string{"configmap/app", "configmap/extra", "secret/db", "secret/more"}
}

// editing generates histories that change what a template references.
type editing struct {
	random *rand.Rand
	kind   KindOf
	// The state after the actions so far.
	down, gap, armed, waits bool
	paused, held, aborted   bool
	// settled is true right after a settlement.
	settled bool
}

// NewReferences generates the history of a seed in which the workload's references, its annotation
// and its sources change. It ends with Lockstep running and everything accepted.
func NewReferences(seed uint64, kind KindOf, length int) History {
	g := &editing{random: rand.New(rand.NewPCG(seed, 2)), kind: kind}
	h := History{Seed: seed, Kind: kind, Edits: true, Actions: []Action{{Verb: Settle}}}
	for len(h.Actions) <= length {
		a := pick(g.random, g.choices())
		g.note(a)
		g.settled = false
		h.Actions = append(h.Actions, a)
		if !g.down && !g.gap && g.random.IntN(4) == 0 {
			g.waits, g.settled = false, true
			h.Actions = append(h.Actions, Action{Verb: Settle})
		}
	}
	for _, v := range []Verb{Look, Start, Settle, Resume, Free, Settle, Release, Settle} {
		h.Actions = append(h.Actions, Action{Verb: v})
	}
	for _, source := range Sources() {
		h.Actions = append(h.Actions, Action{Verb: Restore, Source: source})
	}
	for _, v := range []Verb{Settle, ByItself, Start, Settle, Release, End} {
		h.Actions = append(h.Actions, Action{Verb: v})
	}
	return h
}

// Touched is the history with writes of the workload that don't change its template, and with time that passes: then
// times tell more than the order of writes does, and less.
func (h History) Touched() History {
	random := rand.New(rand.NewPCG(h.Seed, 3))
	var all []Action
	for _, a := range h.Actions {
		all = append(all, a)
		switch random.IntN(8) {
		case 0, 1, 2:
			all = append(all, Action{Verb: Later})
		case 3:
			all = append(all, Action{Verb: Hold}, Action{Verb: Free})
		}
	}
	h.Actions = all
	return h
}

func (g *editing) source() string { return Sources()[g.random.IntN(len(Sources()))] }
func (g *editing) key() string    { return []string{"a", "b", "c"}[g.random.IntN(3)] }

func (g *editing) place() Place {
	return []Place{Env, EnvFrom, Volume, Projected, Init}[g.random.IntN(5)]
}

// reference draws a place. An envFrom has no key, and an env has one.
func (g *editing) reference() Reference {
	r := Reference{Place: g.place(), Source: g.source(), Key: g.key(), Optional: g.random.IntN(3) == 0}
	if r.Place == EnvFrom || r.Place != Env && g.random.IntN(2) == 0 {
		r.Key = ""
	}
	return r
}

func (g *editing) choices() []choice {
	which := g.random.IntN(4)
	all := []choice{
		{Action{Verb: Change, Source: g.source(), Key: g.key()}, 40},
		{Action{Verb: ChangeBack, Source: g.source(), Key: g.key()}, 8},
		{Action{Verb: RemoveKey, Source: g.source(), Key: g.key()}, 3},
		{Action{Verb: SwapKeys, Source: g.source()}, 2},
		{Action{Verb: Remove, Source: g.source()}, 2},
		{Action{Verb: Restore, Source: g.source()}, 8},
		{Action{Verb: AddReference, Ref: g.reference()}, 12},
		{Action{Verb: RemoveReference, Revision: which}, 6},
		{Action{Verb: SwapReference, Revision: which, Ref: g.reference()}, 6},
		{Action{Verb: SwapKey, Revision: which, Key: g.key()}, 6},
		{Action{Verb: SwapSource, Revision: which, Source: g.source()}, 6},
		{Action{Verb: SwapPlace, Revision: which, Ref: Reference{Place: g.place()}}, 4},
		{Action{Verb: SwitchOptional, Revision: which}, 4},
		{Action{Verb: Rename}, 3},
		{Action{Verb: List, Revision: g.random.IntN(len(lists())) * g.random.IntN(2)}, 5},
		{Action{Verb: Deploy, Source: g.source(), Key: g.key()}, 8},
		{Action{Verb: DeployLast, Source: g.source(), Key: g.key()}, 8},
		{Action{Verb: Deploy, Source: g.source(), Key: g.key(), Ref: g.reference()}, 4},
		{Action{Verb: DeployLast, Source: g.source(), Key: g.key(), Ref: g.reference()}, 4},
		{Action{Verb: Rollout}, 4},
	}
	return append(append(all, g.aboutLockstep()...), g.aboutWorkload()...)
}

func (g *editing) aboutLockstep() []choice {
	switch {
	case g.down, g.waits:
		return []choice{{Action{Verb: Start}, 25}}
	case g.gap:
		return []choice{{Action{Verb: Look}, 25}}
	}
	return []choice{{Action{Verb: Kill}, 10}, {Action{Verb: Upgrade}, 4}, {Action{Verb: KillAfterPatch}, 4}, {Action{Verb: Yield}, 6}, {Action{Verb: Gap}, 8}}
}

func (g *editing) aboutWorkload() []choice {
	if g.kind == CronJob {
		return nil
	}
	all := []choice{{Action{Verb: Undo, Revision: g.random.IntN(3) * g.random.IntN(2)}, 4}, {Action{Verb: Strip}, 1}, {Action{Verb: Release}, 1}}
	switch {
	case g.paused:
		all = append(all, choice{Action{Verb: Resume}, 12})
	case !g.kind.HasOnDelete():
		all = append(all, choice{Action{Verb: Pause}, 2})
	}
	if g.held {
		all = append(all, choice{Action{Verb: Free}, 12})
	} else {
		all = append(all, choice{Action{Verb: Hold}, 2})
	}
	if g.kind.HasOnDelete() {
		if g.settled { // in the middle of a rollout, it would leave pods that a record counts as replaced
			all = append(all, choice{Action{Verb: ByHand}, 6})
		}
		return append(all, choice{Action{Verb: ByItself}, 2}, choice{Action{Verb: DeletePod, Revision: g.random.IntN(2)}, 6})
	}
	if g.kind != Deployment && !g.paused {
		all = append(all, choice{Action{Verb: Promote}, 8})
		if g.aborted {
			all = append(all, choice{Action{Verb: Retry}, 4})
		} else {
			all = append(all, choice{Action{Verb: Abort}, 3})
		}
	}
	return all
}

// note tracks which actions are possible next.
func (g *editing) note(a Action) {
	switch a.Verb {
	case Kill, Upgrade:
		g.down, g.armed, g.waits = true, false, false
	case Yield:
		g.waits, g.armed = true, false
	case Start:
		g.down, g.armed, g.waits = false, false, false
	case KillAfterPatch:
		g.armed = true
	case Gap, Look:
		g.gap = a.Verb == Gap
	case Pause, Resume:
		g.paused = a.Verb == Pause
	case Hold, Free:
		g.held = a.Verb == Hold
	case Undo:
		g.held = g.held && g.kind != Deployment
		g.aborted = false
	case Abort:
		g.aborted = true
	default: // any other template ends an abort
		g.aborted = false
	}
}
