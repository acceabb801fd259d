package histories

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Verbs of a fleet, beside Change, ChangeBack, Rollout, Pause, Resume, Hold, Free, Scale and
// those about Lockstep.
const (
	// Spoil sets a source to a content with which no pod becomes available, SpoilOne to one with
	// which the pods of one workload don't, and Weaken to one with which pods become available
	// and crash a little later.
	Spoil    Verb = "change to a content that fails"
	SpoilOne Verb = "change to a content that fails for one"
	Weaken   Verb = "change to a content that fails later"
	// Break makes the pods of a workload fail whatever they load, Mend ends that.
	Break Verb = "break"
	Mend  Verb = "mend"
	// StopAll and StopNamespace are the kill switch, and Unstop ends it.
	StopAll       Verb = "stop everything"
	StopNamespace Verb = "stop the namespace"
	Unstop        Verb = "end the stop"
	// Accept resumes the current version of a source. Hurry and Slow set and remove the
	// annotation that switches the steps of its changes off.
	Accept Verb = "resume the version"
	Hurry  Verb = "switch the steps off"
	Slow   Verb = "switch the steps on"
	// SetWindow sets the maintenance window of a workload or namespace. Open removes it.
	SetWindow Verb = "set the window"
	Open      Verb = "remove the window"
	// Limit lets one workload of a namespace roll at a time, Unlimit removes that limit.
	Limit   Verb = "limit"
	Unlimit Verb = "remove the limit"
	// Order lets a workload wait for the first one of its namespace, Unorder ends that.
	Order   Verb = "order"
	Unorder Verb = "remove the order"
	// Prefer lets a workload go first, Unprefer ends that.
	Prefer   Verb = "prefer"
	Unprefer Verb = "don't prefer"
	// LongQuiet and ShortQuiet give a workload a quiet window of a day, and one that is a little longer
	// than the maximum delay. NoQuiet removes it.
	LongQuiet  Verb = "set a quiet window of a day"
	ShortQuiet Verb = "set a quiet window of 90 seconds"
	NoQuiet    Verb = "remove the quiet window"
	// Wait lets some minutes pass, and Endure so many hours that only what stays in the way of a workload
	// is still in its way.
	Wait   Verb = "7 minutes pass"
	Endure Verb = "6 hours pass"
	// Calm removes everything that is in the way of a change, and makes every content good.
	Calm Verb = "remove every obstacle"
)

// Fleet is how Lockstep treats a fleet.
type Fleet struct {
	// Ramp, MaxRolling and StopAfter are the options of the same names. The zero value bounds
	// nothing.
	Ramp                  bool
	MaxRolling, StopAfter int
	// Settle, Timeout and PauseGrace are how long Lockstep waits for a workload.
	Settle, Timeout, PauseGrace time.Duration
	// Damping and MaxDamping are the first and the longest pause after a series of rollouts.
	Damping, MaxDamping time.Duration
	// Window is the window of workloads without one of their own.
	Window Window
	// MaxDelay is the option of the same name, zero for the default.
	MaxDelay time.Duration
}

// Window is open for five minutes of every twenty, from an offset on. The zero value is always
// open.
type Window struct {
	Offset    time.Duration
	Every, To time.Duration
}

// IsOpen reports whether the window is open.
func (w Window) IsOpen(at time.Time) bool {
	return w.Every == 0 || (at.Sub(at.Truncate(time.Hour))-w.Offset+w.Every)%w.Every < w.To
}

// LongQuietWindow and ShortQuietWindow are the quiet windows that a workload can have.
const (
	LongQuietWindow  = 24 * time.Hour
	ShortQuietWindow = 90 * time.Second
)

// Shared is a source of a fleet that is one change in all namespaces when all have its content.
const Shared = "configmap/ca"

// Namespaces of a fleet.
func Namespaces() []string { return []string{"blog", "shop"} }

// Uses are the sources of each workload of a fleet: six use a ConfigMap, and three a Secret;
// three of another namespace use a ConfigMap of the same name, and six of both the shared one.
func Uses() map[string][]string {
	return map[string][]string{
		"shop/a": {ConfigMap, Secret}, "shop/b": {ConfigMap, Secret}, "shop/c": {ConfigMap, Shared, Secret},
		"shop/d": {ConfigMap, Shared}, "shop/e": {ConfigMap, Shared}, "shop/f": {ConfigMap, Shared},
		"blog/g": {ConfigMap, Shared}, "blog/h": {ConfigMap, Shared}, "blog/i": {ConfigMap},
	}
}

// Workloads are those of a fleet, in order.
func Workloads() []string {
	return slices.Sorted(maps.Keys(Uses()))
}

// fleetGenerator draws actions on a fleet.
type fleetGenerator struct {
	random    *rand.Rand
	down, gap bool
}

// NewFleet generates the history of a seed. It ends with Lockstep running, and with everything
// delivered that is in nobody's way.
func NewFleet(seed uint64, length int) History {
	g := &fleetGenerator{random: rand.New(rand.NewPCG(seed, 2))}
	pick := func(all ...int) int { return all[g.random.IntN(len(all))] }
	h := History{Seed: seed, Actions: []Action{{Verb: Settle}}, Fleet: Fleet{
		Ramp: g.random.IntN(8) > 0, MaxRolling: pick(20, 20, 0, 2, 3), StopAfter: pick(1, 1, 1, 2),
		Settle: 10 * time.Second, Timeout: 10 * time.Minute, PauseGrace: 10 * time.Minute,
	}}
	more := rand.New(rand.NewPCG(seed, 3)) // what was added later leaves the seeds as they are
	h.Fleet.MaxDelay = []time.Duration{0, 0, time.Second, 10 * time.Minute, time.Hour}[more.IntN(5)]
	if more.IntN(6) == 0 {
		h.Fleet.Damping, h.Fleet.MaxDamping = time.Minute, 10*time.Minute
	}
	if g.random.IntN(6) == 0 {
		h.Fleet.Window = Windows()[g.random.IntN(2)]
	}
	for len(h.Actions) <= length {
		a := g.draw()
		switch a.Verb {
		case Kill, Start:
			g.down = a.Verb == Kill
		case Gap, Look:
			g.gap = a.Verb == Gap
		default: // the rest is always possible
		}
		h.Actions = append(h.Actions, a)
		if !g.down && !g.gap && g.random.IntN(4) == 0 {
			h.Actions = append(h.Actions, Action{Verb: Settle})
		}
	}
	for _, v := range []Verb{Look, Start, Settle, Endure, Calm, Start, Settle} {
		h.Actions = append(h.Actions, Action{Verb: v})
	}
	return h
}

// Windows are those that a fleet can have: the first one on workloads, the other on namespaces.
func Windows() []Window {
	return []Window{{Every: 20 * time.Minute, To: 5 * time.Minute}, {Offset: 10 * time.Minute, Every: 20 * time.Minute, To: 5 * time.Minute}}
}

func (g *fleetGenerator) draw() Action {
	all := append(g.aboutLockstep(), choice{Action{Verb: StopAll}, 3}, choice{Action{Verb: Unstop}, 6}, choice{Action{Verb: Wait}, 6})
	add := func(on Action, verbs ...choice) {
		for _, c := range verbs {
			all = append(all, choice{Action{Verb: c.action.Verb, Source: on.Source, On: on.On}, c.weight})
		}
	}
	is := func(v Verb, weight int) choice { return choice{Action{Verb: v}, weight} }
	add(g.source(), is(Change, 14), is(Spoil, 6), is(SpoilOne, 6), is(Weaken, 3), is(ChangeBack, 4), is(Accept, 4), is(Hurry, 1), is(Slow, 2))
	add(Action{On: Workloads()[g.random.IntN(len(Uses()))]},
		is(Break, 3), is(Mend, 5), is(Hold, 2), is(Free, 3), is(Scale, 3), is(Pause, 2), is(Resume, 3), is(Rollout, 2),
		is(SetWindow, 2), is(Open, 3), is(Order, 3), is(Unorder, 2), is(Prefer, 3), is(Unprefer, 1),
		is(LongQuiet, 4), is(ShortQuiet, 1), is(NoQuiet, 2))
	add(Action{On: Namespaces()[g.random.IntN(2)]}, is(Hold, 2), is(Free, 3), is(SetWindow, 1), is(Open, 2), is(Limit, 2), is(Unlimit, 2), is(StopNamespace, 2))
	return pick(g.random, all)
}

func (g *fleetGenerator) aboutLockstep() []choice {
	switch {
	case g.down:
		return []choice{{Action{Verb: Start}, 30}}
	case g.gap:
		return []choice{{Action{Verb: Look}, 30}}
	}
	return []choice{{Action{Verb: Kill}, 5}, {Action{Verb: KillAfterPatch}, 5}, {Action{Verb: Gap}, 3}}
}

// source draws a source. The shared one changes in all namespaces, or in one.
func (g *fleetGenerator) source() Action {
	all := []Action{
		{Source: ConfigMap, On: "shop"},
		{Source: ConfigMap, On: "shop"},
		{Source: ConfigMap, On: "blog"},
		{Source: Secret, On: "shop"},
		{Source: Shared},
		{Source: Shared},
		{Source: Shared, On: "blog"},
	}
	return all[g.random.IntN(len(all))]
}
