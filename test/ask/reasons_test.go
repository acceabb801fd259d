package ask_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// where is the part of an explanation that has to show a reason.
type where string

const (
	// inState: the reason is the state, from the record, in the controller's words.
	inState where = "state"
	// inEvents: the reason is among the events.
	inEvents where = "events"
	// inWarnings: the reason is among the warnings.
	inWarnings where = "warnings"
	// inFlags: the reason is the state, from the arguments of the controller's Deployment.
	inFlags where = "flags"
	// inStep: the controller decided so, and the workload is in step since.
	inStep where = "in step"
	// inInputs: the reason is that of an input; a decision with another reason follows.
	inInputs where = "inputs"
)

// scene brings the controller into a situation.
type scene struct {
	reason input.Reason
	where  where
	// ref is the workload, "deployment/" and the reason in small letters unless it is set.
	ref string
	// make makes the objects before the controller runs, bring does what leads to the
	// reason once the workload is on record, down what happens while the controller is
	// stopped, and also says what else is wrong with an explanation, empty when nothing is.
	make  func(t testing.TB, s *stage, name string)
	bring func(t testing.TB, s *stage, name string)
	down  func(t testing.TB, s *stage, name string)
	also  func(t testing.TB, s *stage, e explanation) string
	// inOtherWords is true when the event does not have the words of the log.
	inOtherWords bool
	// unseen is true for a workload that is not on record before bring.
	unseen bool
}

func (c scene) workload() string {
	if c.ref != "" {
		return c.ref
	}
	return "deployment/" + strings.ToLower(string(c.reason))
}

func (c scene) name() string {
	_, name, _ := strings.Cut(c.workload(), "/")
	return name
}

// group is scenes that share a controller.
type group struct {
	needs []labtest.Component
	// run starts the controller, once the objects are there, and again after it was
	// stopped.
	run func(t testing.TB, s *stage)
	// open comes before all else, ready after every workload is on record.
	open, ready func(t testing.TB, s *stage)
	scenes      []scene
}

func groups() map[string]group {
	return map[string]group{
		"Plain": plainScenes(), "Pods": podScenes(), "Images": imageScenes(), "Down": downScenes(),
		"Permissions": rightsScenes(), "Off": offScenes(), "KindOff": kindScenes(), "Room": roomScenes(), "Unwritable": unwritableScenes(), "Two": twoInstallations(), "Safe": safeScenes(), "Stopped": stoppedScenes(),
	}
}

// TestEveryReasonHasAScene: a new reason is a new scene. Those of revisions are about a
// ConfigMap or Secret and not about a workload; test/e2e/revisions has them.
func TestEveryReasonHasAScene(t *testing.T) {
	t.Parallel()
	scenes := map[input.Reason]int{}
	for _, g := range groups() {
		for _, c := range g.scenes {
			scenes[c.reason]++
		}
	}
	for _, e := range slices.Concat(input.FollowExplanations(), input.ImageExplanations()) {
		if scenes[e.Reason] == 0 {
			t.Errorf("no scene leads to %s", e.Reason)
		}
	}
}

// TestReasons: for every reason, the commands say what the controller says.
func TestReasons(t *testing.T) {
	t.Parallel()
	for name, g := range groups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g.play(t)
		})
	}
}

func (g group) play(t *testing.T) {
	t.Helper()
	s := newStage(t, g.needs...)
	if g.open != nil {
		g.open(t, s)
	}
	for _, c := range g.scenes {
		if c.make != nil {
			c.make(t, s, c.name())
		}
	}
	g.run(t, s)
	for _, c := range g.scenes {
		if !c.unseen {
			s.awaitOnRecord(t, c.workload())
		}
	}
	if g.ready != nil {
		g.ready(t, s)
	}
	g.comeBack(t, s)
	for _, c := range g.scenes {
		t.Run(string(c.reason), func(t *testing.T) {
			t.Parallel()
			if c.bring != nil {
				c.bring(t, s, c.name())
			}
			c.see(t, s)
		})
	}
}

// comeBack stops the controller and starts it again, where scenes need that.
func (g group) comeBack(t *testing.T, s *stage) {
	t.Helper()
	if !slices.ContainsFunc(g.scenes, func(c scene) bool { return c.down != nil }) {
		return
	}
	if code := s.controller.Stop(t); code != 0 {
		t.Fatalf("the controller ended with %d", code)
	}
	for _, c := range g.scenes {
		if c.down != nil {
			c.down(t, s, c.name())
		}
	}
	g.run(t, s)
}

// see holds the answers against what the controller says. The record follows the decision
// within a second or two.
func (c scene) see(t *testing.T, s *stage) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		e := s.explain(t, c.workload())
		wrong := c.contradiction(t, s, e)
		if wrong == "" {
			wrong = c.elsewhere(t, s, e)
		}
		return wrong == "", fmt.Sprintf("%s\nexplain: %+v\nlog: %+v\nevents: %q", wrong, e, s.log(t, c.workload()), s.Events(t, c.name()))
	})
}

// elsewhere says what contradicts beside the place of the reason.
func (c scene) elsewhere(t *testing.T, s *stage, e explanation) string {
	t.Helper()
	// Of what is not on record the controller has said nothing that an estimate would contradict.
	if e.Estimate != nil && e.State.Reason != "NotOnRecord" {
		return fmt.Sprintf("the controller has decided, and explain estimates %+v", *e.Estimate)
	}
	if c.also != nil {
		if wrong := c.also(t, s, e); wrong != "" {
			return wrong
		}
	}
	if e.State.From == "estimate" {
		return "" // status estimates nothing
	}
	if got := s.status(t, c.workload()); got.Reason != e.State.Reason || got.Message != e.State.Message {
		return fmt.Sprintf("status says %+v", got)
	}
	return ""
}

// contradiction says in which way an explanation is not what the controller says, empty when
// there is none.
func (c scene) contradiction(t *testing.T, s *stage, e explanation) string {
	t.Helper()
	switch c.where {
	case inState:
		return c.stateDiffers(t, s, e)
	case inFlags:
		if e.State.Reason != string(c.reason) || e.State.From != "flags" || e.State.Ends == "" || e.Meaning == "" {
			return fmt.Sprintf("the state is %+v, want %s from the flags", e.State, c.reason)
		}
		return ""
	case inEvents:
		return c.untold(t, s, e.Events)
	case inWarnings:
		return c.untold(t, s, e.Warnings)
	case inStep:
		if !slices.ContainsFunc(s.log(t, c.workload()), func(d decided) bool { return d.Reason == string(c.reason) }) {
			return "the controller has not decided so"
		}
		return notInStep(e)
	case inInputs:
		return ""
	}
	return "no place is known for " + string(c.where)
}

// stateDiffers compares the state with the last decision that the controller has logged, or
// with the event where an error is no decision.
func (c scene) stateDiffers(t *testing.T, s *stage, e explanation) string {
	t.Helper()
	if e.State.Reason != string(c.reason) || e.State.Since == nil || e.State.From != "record" {
		return fmt.Sprintf("the state is %+v, want %s from the record", e.State, c.reason)
	}
	if e.State.Ends == "" || e.Meaning == "" {
		return "neither what it means nor what ends it may be missing"
	}
	if c.reason == input.ReloadFailed {
		return c.notAmong(s.Events(t, c.name()), e.State.Message)
	}
	all := s.log(t, c.workload())
	if len(all) == 0 {
		return "the controller has decided nothing"
	}
	last := all[len(all)-1]
	if last.Reason != e.State.Reason || record.Brief(last.Message) != e.State.Message {
		return fmt.Sprintf("the controller says %s: %s", last.Reason, last.Message)
	}
	return ""
}

// untold reports what is missing of an event of the reason: the words of the event itself,
// and in them those of the log.
func (c scene) untold(t *testing.T, s *stage, told []event) string {
	t.Helper()
	events := s.Events(t, c.name())
	i := slices.IndexFunc(told, func(e event) bool { return e.Reason == string(c.reason) })
	if i < 0 {
		return "it is not told"
	}
	if wrong := c.notAmong(events, told[i].Note); wrong != "" {
		return wrong
	}
	for _, d := range s.log(t, c.workload()) {
		if d.Reason == string(c.reason) && !c.inOtherWords && !strings.Contains(told[i].Note, d.Message) {
			return "the log says " + d.Message
		}
	}
	return ""
}

// notAmong reports when no event of the reason has the note, or as much as is put on record.
func (c scene) notAmong(events []string, note string) string {
	for _, e := range events {
		_, rest, _ := strings.Cut(e, " ")
		reason, text, _ := strings.Cut(rest, " ")
		if reason == string(c.reason) && (text == note || record.Brief(text) == note) {
			return ""
		}
	}
	return fmt.Sprintf("no event %s says %q", c.reason, note)
}

func notInStep(e explanation) string {
	if e.State.Reason != string(input.InStep) {
		return "it is not in step"
	}
	for _, i := range e.Inputs {
		if i.Followed && i.Delivered != i.Current {
			return "it is in step, and " + i.Input + " is not"
		}
	}
	return ""
}
