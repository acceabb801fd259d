package ask

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// TestAge is the rule for estimates. Each row is a sequence: what the controller decided, what happened
// since, and what can be read of it.
func TestAge(t *testing.T) {
	t.Parallel()
	const (
		due = 1 << iota
		isNew
		blind
		same
	)
	for name, tc := range map[string]struct {
		reason        string
		recorded, now input.Reason
		facts         int
		want          age
	}{
		"NothingHappened":     {"both say the same", input.Held, input.Held, due, upToDate},
		"Released":            {"a hold can be read, and there is none", input.Held, input.Reloaded, due, outdated},
		"ReleasedInHiding":    {"the namespace may hold", input.Held, input.Reloaded, due | blind, upToDate},
		"HeldInTurn":          {"a hold goes before the turn", input.AwaitsTurn, input.Held, due, outdated},
		"HeldInTurnInHiding":  {"an object that can't be read doesn't end a hold that can", input.AwaitsTurn, input.Held, due | blind, outdated},
		"HeldThenClosed":      {"the workload may still be held, by its namespace", input.Held, input.AwaitsWindow, due | blind, upToDate},
		"DampedThenStopped":   {"a stop goes before the delay", input.Damped, input.Stopped, due, outdated},
		"PausedInTurn":        {"so does a pause", input.AwaitsTurn, input.Paused, due, outdated},
		"Closed":              {"so does a window", input.AwaitsWorkload, input.AwaitsWindow, due, outdated},
		"FirstNoMore":         {"the annotation that names the first workload is gone", input.AwaitsWorkload, input.Reloaded, due, outdated},
		"HeldBehindFirst":     {"a hold goes before the order, whatever else can't be read", input.AwaitsWorkload, input.Held, due | blind, outdated},
		"DeletedInTurn":       {"pods can't start without a required source", input.AwaitsTurn, input.Missing, 0, outdated},
		"Never":               {"the annotation says never since", input.InStep, input.NotFollowed, 0, outdated},
		"NotUnderstood":       {"the annotation isn't understood any more", input.InStep, input.InvalidAnnotation, 0, outdated},
		"Undone":              {"an undo since", input.InStep, input.Undone, 0, outdated},
		"UndoneInHiding":      {"what isn't visible may differ", input.InStep, input.Undone, blind, upToDate},
		"Redone":              {"the undo was undone", input.Undone, input.InStep, 0, outdated},
		"ChangedBackInQuiet":  {"nothing is due any more", input.QuietWindow, input.InStep, 0, outdated},
		"ChangedBackInTurn":   {"nothing is due any more", input.AwaitsTurn, input.InStep, 0, outdated},
		"ChangedBackDamped":   {"nothing is due any more", input.Damped, input.InStep, 0, outdated},
		"ChangedBackInHiding": {"another input may be due", input.Damped, input.InStep, blind, upToDate},
		"RolloutFailed":       {"the version is delivered, and its rollout isn't an object that is read", input.RolloutFailed, input.InStep, 0, upToDate},
		"Unresolved":          {"only the controller queries the registry", input.Unresolved, input.InStep, 0, upToDate},
		"VersionStopped":      {"only the controller knows", input.VersionStopped, input.Reloaded, due, upToDate},
		"Evicting":            {"the rollout is on its way", input.Evicting, input.Reloaded, due, upToDate},
		"Recording":           {"the controller only records it", input.InStep, input.DeliveredByRollout, 0, upToDate},
		"Changed":             {"the version isn't on record", input.InStep, input.QuietWindow, due | isNew, outdated},
		"ChangedAgain":        {"the message names the newer version", input.Held, input.Held, due | isNew, outdated},
		"ChangedInHiding":     {"whether a user forbids it can't be read", input.InStep, input.Reloaded, due | isNew | blind, superseded},
		"ChangedMistaken":     {"the record isn't written before the mistake is corrected", input.RecordFull, input.RecordFull, due | isNew | same, upToDate},
		"NotActed":            {"nothing is judged before the workload's controller has acted", input.Held, input.GenerationNotObserved, due | isNew, upToDate},
		"KeepsChanging":       {"that is recorded once a minute", input.QuietWindow, input.QuietWindow, due | isNew, upToDate},
		"ChangedThenDown":     {"it has been quiet since", input.QuietWindow, input.Reloaded, due | isNew, outdated},
	} {
		c := comparison{recorded: tc.recorded, now: tc.now, isSame: tc.facts&same != 0, isDue: tc.facts&due != 0, isNew: tc.facts&isNew != 0, isBlind: tc.facts&blind != 0}
		if got := c.age(); got != tc.want {
			t.Errorf("%s: %s: %d, want %d", name, tc.reason, got, tc.want)
		}
	}
}

var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func webDeployment() *kube.Workload {
	kind := kube.Deployment()
	return &kube.Workload{Identity: kube.Identity{Kind: kind, Key: kube.Key{GroupKind: kind.GroupKind(), Namespace: "shop", Name: "web"}}}
}

// world makes random situations: what the controller sees, and what it decides.
type world struct{ *rand.Rand }

func (w world) chance(percent int) bool { return w.IntN(100) < percent }

func (w world) version() fingerprint.Version {
	return fingerprint.Version{Basis: "1:*", Sum: fmt.Sprintf("%010d", w.IntN(1e6))}
}

func (w world) finding(id input.ID) input.Finding {
	v := w.version()
	f := input.Finding{ID: id, Reason: input.InStep, Live: id.IsSource(), Versions: input.Versions{Delivered: v, Current: v}}
	if w.chance(60) {
		f.Standing, f.Reason, f.Current = input.Due, input.Changed, w.version()
		f.ChangedAt = testTime.Add(-time.Duration(w.IntN(20)) * time.Second)
	}
	for _, bar := range []input.Reason{input.Held, input.Undone, input.Quarantined} {
		if w.chance(5) && id.IsSource() == (bar != input.Quarantined) {
			f.Bars = append(f.Bars, input.Bar{Reason: bar, By: "test"})
		}
	}
	return f
}

// observation is what the controller sees.
func (w world) observation() rollouts.Observation {
	in := rollouts.Observation{Now: testTime, MaxDelay: time.Minute, Intent: settings.Intent{Mode: settings.Follow, Quiet: 5 * time.Second}}
	in.Findings = []input.Finding{w.finding(input.ConfigMap("app")), w.finding(input.Image("web"))}
	in.Intent.Held, in.Intent.NamespaceHeld, in.Gates.Stopped = w.chance(15), w.chance(15), w.chance(10)
	in.State.Rollout.Paused, in.Turn.Refused = w.chance(10), w.chance(30)
	if w.chance(15) {
		in.Gates.Window = rollouts.WindowState{Text: "0 5 * * * 1h", On: "on the workload", Opens: testTime.Add(time.Hour)}
	}
	if w.chance(15) {
		in.Intent.After, in.Gates.After = []string{"deployment/db"}, "deployment/db"
	}
	if w.chance(15) {
		in.Gates.Damped = rollouts.DampedState{Until: testTime.Add(time.Minute), Why: "test"}
	}
	if w.chance(5) {
		in.RecordFull = "test"
	}
	if w.chance(5) {
		in.Intent.Mistakes.Problems = []settings.Problem{settings.WindowProblem("soon", fmt.Errorf("test"))}
	}
	return in
}

// recorded is the situation of a user right after the controller's decision. Such a user doesn't see
// times, turns and other workloads.
func (w world) recorded() Situation {
	in := w.observation()
	d := rollouts.Decide(in)
	s := Situation{Workload: webDeployment(), Recorded: true, Readable: true}
	s.Fleet.Watches = func(string) bool { return true }
	s.Controller.State = []string{Running, Down, Unknown}[w.IntN(3)]
	s.Entry.Inputs = map[input.ID]record.Delivered{}
	s.Entry.Decision = record.NewDecision(d.Reason, d.Message, testTime, time.Time{})
	switch {
	case d.Verb == rollouts.RollOut:
		s.Entry.Decision = record.Decision{}
	case d.Delivered, d.Reason == input.InStep:
		s.Entry.Decision = record.NewDecision(input.InStep, "", testTime, time.Time{})
	}
	s.Entry.PendingSince = d.PendingSince
	for i, f := range in.Findings {
		delivers := slices.ContainsFunc(d.Due, func(due input.Finding) bool { return d.Delivered && due.ID == f.ID })
		if delivers {
			f.Standing, f.Reason, f.Delivered = input.Settled, input.InStep, f.Current
		}
		given := record.Delivered{Version: f.Delivered}
		if f.Standing == input.Due {
			given.Due = f.Current.Short()
		}
		f.ChangedAt = testTime.Add(-time.Duration(w.IntN(20)) * time.Second)
		in.Findings[i], s.Entry.Inputs[f.ID] = f, given
	}
	in.Turn, in.Gates.After, in.Gates.Damped, in.RecordFull, in.Entry = rollouts.TurnState{}, "", rollouts.DampedState{}, "", s.Entry
	s.Live = in
	if s.Live.Gates.Stopped {
		s.Stops = []Stop{{}}
	}
	return s
}

// changed is a situation in which objects have changed since, or can't be read any more.
func (w world) changed(s Situation) Situation {
	in := &s.Live
	for range 1 + w.IntN(3) {
		switch i := w.IntN(2); w.IntN(9) {
		case 0:
			in.Intent.Held = !in.Intent.Held
		case 1:
			in.Intent.NamespaceHeld = !in.Intent.NamespaceHeld
		case 2:
			in.State.Rollout.Paused = !in.State.Rollout.Paused
		case 3:
			in.Gates.Stopped = !in.Gates.Stopped
			s.Stops = map[bool][]Stop{true: {{}}}[in.Gates.Stopped]
		case 4:
			in.Gates.Window = rollouts.WindowState{}
		case 5:
			in.Intent.After = nil
		case 6: // changed back
			f := &in.Findings[i]
			f.Standing, f.Reason, f.Current, f.Bars = input.Settled, input.InStep, f.Delivered, nil
		case 7:
			f := &in.Findings[0]
			f.Standing, f.Reason, f.Current, f.ChangedAt = input.Due, input.Changed, w.version(), testTime
		case 8: // the namespace isn't visible
			s.Blind, in.Intent.NamespaceHeld = true, false
		}
	}
	return s
}

// contradiction describes how two parts of an explanation contradict each other, or an object that is
// visible. It is empty for most.
func contradiction(s Situation, e Explanation) string {
	next, words, in := e.NextReport(), e.NextWords(testTime), s.Live
	isBarred := slices.ContainsFunc(in.Findings, func(f input.Finding) bool { _, held := f.BarredFor(input.Held); return held })
	denied := map[input.Reason]bool{
		input.Held: in.Hold() == "" && !isBarred, input.Stopped: len(s.Stops) == 0,
		input.Paused: !in.State.Rollout.Paused, input.AwaitsWindow: !in.Gates.Window.Opens.After(in.Now),
		input.InvalidAnnotation: len(in.Intent.Mistakes.Problems) == 0, input.AwaitsWorkload: len(in.Intent.After) == 0,
	}
	overtaken := []input.Reason{input.AwaitsTurn, input.Damped, input.AwaitsWorkload, input.Reloaded}
	hasDue := slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return f.Standing == input.Due })
	switch {
	case e.Estimate != nil && e.Estimate.Reason == e.State.Reason && e.Estimate.Message == e.State.Message:
		return "the estimate repeats the state"
	case denied[input.Reason(next.Reason)] && !s.Blind:
		return "Next belongs to " + next.Reason + ", and the objects show that it is over"
	case (in.Hold() != "" || len(s.Stops) > 0) && hasDue && slices.Contains(overtaken, input.Reason(next.Reason)):
		return "it is held or stopped, and Next belongs to " + next.Reason
	case in.Hold() != "" && hasDue && next.Reason == string(input.QuietWindow) && !strings.Contains(words, "end of the hold"):
		return "Next doesn't name the hold"
	case strings.HasPrefix(words, "the rollout") && s.Blind:
		return "a rollout is promised, and an object that may forbid it isn't visible"
	case e.WaitingWords(testTime) != "" && (next.IsInStep() || !hasDue && !s.Blind && e.Estimate != nil):
		return "a change waits, and none is due"
	case strings.HasPrefix(words, "nothing, until an input changes") && (s.Controller.State == Down || hasDue && !s.Blind):
		return "Next is " + words
	case len(s.Stops) > 0 && words == "nothing, until an input changes":
		return "Next doesn't name the stop"
	case len(e.Notes) > 0 && next.Reason == string(input.Held):
		return "the note repeats the hold"
	}
	return ""
}

// TestEstimatesNeverContradict: if nothing has changed since the decision on record, there is no
// estimate; and whatever has changed, the parts of the explanation agree.
func TestEstimatesNeverContradict(t *testing.T) {
	t.Parallel()
	estimates := 0
	for seed := range uint64(20000) {
		w := world{rand.New(rand.NewPCG(seed, 1))} // each run makes the same situations
		s := w.recorded()
		e := Explain(s)
		if e.Estimate != nil {
			t.Fatalf("seed %d: nothing changed, the state is %+v, and the estimate %+v", seed, e.State, *e.Estimate)
		}
		if wrong := contradiction(s, e); wrong != "" {
			t.Fatalf("seed %d: nothing changed: %s: %+v", seed, wrong, e)
		}
		s = w.changed(s)
		e = Explain(s)
		if wrong := contradiction(s, e); wrong != "" {
			t.Fatalf("seed %d: %s\nstate %+v\nestimate %+v\nnext %s\nnotes %q", seed, wrong, e.State, e.Estimate, e.NextWords(testTime), e.Notes)
		}
		if e.Estimate != nil {
			estimates++
		}
	}
	if estimates < 2000 {
		t.Errorf("only %d situations lead to an estimate", estimates)
	}
}

// TestEstimateSinceAnEvent: without the record, the objects show whether the reason of the newest event
// still applies.
func TestEstimateSinceAnEvent(t *testing.T) {
	t.Parallel()
	const held = `not rolled out: held by annotation lockstep.dev/hold ("freeze"): configmap/app 1 -> 2`
	for name, tc := range map[string]struct {
		reason string
		told   announce.Reported
		live   rollouts.Observation
		blind  bool
		want   string
	}{
		"Released":    {"the hold is gone", announce.Reported{Reason: string(input.Held), Note: held}, rollouts.Observation{}, false, string(input.Changed)},
		"Held":        {"it is still held", announce.Reported{Reason: string(input.Held), Note: held}, rollouts.Observation{Intent: settings.Intent{Gates: settings.Gates{NamespaceHeld: true}}}, false, ""},
		"Hidden":      {"the namespace may hold", announce.Reported{Reason: string(input.Held), Note: held}, rollouts.Observation{}, true, ""},
		"HoldOfUndo":  {"only the record contains that hold", announce.Reported{Reason: string(input.Held), Note: "held, although an undo removed the annotation lockstep.dev/hold"}, rollouts.Observation{}, false, ""},
		"Resumed":     {"the workload isn't paused any more", announce.Reported{Reason: string(input.Paused)}, rollouts.Observation{}, false, string(input.Changed)},
		"OnlyOnTurns": {"a turn can't be read", announce.Reported{Reason: string(input.AwaitsTurn)}, rollouts.Observation{}, false, ""},
	} {
		tc.told.By = announce.Reporter
		s := Situation{Workload: webDeployment(), Live: tc.live, Gaps: Gaps{Blind: tc.blind}, Events: []announce.Reported{tc.told}}
		e, got := Explain(s), ""
		if e.Estimate != nil {
			got = e.Estimate.Reason
		}
		if e.State.Reason != tc.told.Reason || got != tc.want {
			t.Errorf("%s: %s: state %s, estimate %q, want %q", name, tc.reason, e.State.Reason, got, tc.want)
		}
		if strings.Contains(e.NextWords(testTime), "lockstep release") && got != "" {
			t.Errorf("%s: Next is %s", name, e.NextWords(testTime))
		}
	}
}

// TestNextWords: nothing is promised that a controller that is down or stopped doesn't do.
func TestNextWords(t *testing.T) {
	t.Parallel()
	since := testTime.Add(-5 * time.Minute)
	inStep := Report{Reason: string(input.InStep), From: FromRecord, PendingSince: &since}
	held := Report{Reason: string(input.Held), From: FromRecord, Ends: "the end", PendingSince: &since}
	for name, tc := range map[string]struct {
		e             Explanation
		next, waiting string
	}{
		"Running":    {Explanation{Controller: Controller{State: Running}, State: inStep}, "nothing, until an input changes", ""},
		"Down":       {Explanation{Controller: Controller{State: Down}, State: inStep}, "nothing while the controller is down", ""},
		"Stopped":    {Explanation{Controller: Controller{State: Running}, State: inStep, Flow: Flow{Stops: []Stop{{}}}}, "nothing, until an input changes and the stop ends (lockstep resume)", ""},
		"Both":       {Explanation{Controller: Controller{State: Down}, State: inStep, Flow: Flow{Stops: []Stop{{}}}}, "nothing while the controller is down", ""},
		"Held":       {Explanation{Controller: Controller{State: Running}, State: held}, "the workload waits for the end", "the oldest pending change was seen 5m ago"},
		"HeldDown":   {Explanation{Controller: Controller{State: Down}, State: held}, "nothing while the controller is down; the workload waits for the end", "the oldest pending change was seen 5m ago"},
		"NoneIsDue":  {Explanation{Controller: Controller{State: Running}, State: held, Estimate: &Report{Reason: string(input.InStep), From: FromEstimate}}, "nothing, until an input changes", ""},
		"NextJob":    {Explanation{Controller: Controller{State: Down}, State: inStep, Estimate: &Report{Reason: string(input.NextJob), From: FromEstimate}}, "the next Job loads it", ""},
		"RolledOut":  {Explanation{Controller: Controller{State: Running}, State: held, Estimate: &Report{Reason: string(input.DeliveredBefore), From: FromEstimate}}, "nothing, until an input changes", ""},
		"AboutToRun": {Explanation{Controller: Controller{State: Running}, State: held, Estimate: &Report{Reason: string(input.Reloaded), From: FromEstimate, PendingSince: &since}}, "the rollout, at the controller's next check", "the oldest pending change was seen 5m ago"},
	} {
		if next, waiting := tc.e.NextWords(testTime), tc.e.WaitingWords(testTime); next != tc.next || waiting != tc.waiting {
			t.Errorf("%s: next %q, waiting %q", name, next, waiting)
		}
	}
}

// TestRolledOut: until the controller's rollout after a release is on record, the rule for the objects sees only the release.
func TestRolledOut(t *testing.T) {
	t.Parallel()
	id, mark := input.ConfigMap("app"), input.Tracked("0123456789")
	for name, tc := range map[string]struct {
		shown input.Shown
		want  input.Reason
	}{
		"RolledOut": {input.Shown{id: mark}, input.DeliveredBefore},
		"Accepted":  {input.Shown{id: input.Tracked("77ab01c9de")}, input.Released},
		"NotShown":  {nil, input.Released},
	} {
		s, f := Situation{Workload: &kube.Workload{}}, input.Finding{ID: id}
		s.Workload.Shown, f.Shows = tc.shown, mark
		s.Live.Template.Released, s.Live.Findings = []input.ID{id}, []input.Finding{f}
		if got := s.rolledOut(rollouts.Decision{Reason: input.Released}); got.Reason != tc.want {
			t.Errorf("%s: %s, want %s", name, got.Reason, tc.want)
		}
	}
}
