package rollouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestDecisionsOnRecord: whoever reads the record reads what was decided, for as long as the
// workload is not in step.
func TestDecisionsOnRecord(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New("no"))
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("written meanwhile"))
	cases := map[string]struct {
		reason string
		change func(*scene)
		want   input.Reason
		says   string
	}{
		"Held":     {"a person forbids it", func(s *scene) { s.workload.Annotations[settings.Hold] = "freeze" }, input.Held, `"freeze"`},
		"Quiet":    {"it changed a moment ago", func(s *scene) { s.findings = []input.Finding{due(app, time.Second)} }, input.QuietWindow, "configmap/app"},
		"Undone":   {"it was reverted", func(s *scene) { s.findings = []input.Finding{barred(inStep(app), input.Undone, "1")} }, input.Undone, "configmap/app"},
		"Mistake":  {"a person has to correct it", func(s *scene) { s.workload.Annotations[settings.Quiet] = "soon" }, input.InvalidAnnotation, "soon"},
		"NotActed": {"its controller has not acted", func(s *scene) { s.findings = []input.Finding{{Reason: input.GenerationNotObserved}} }, input.GenerationNotObserved, ""},
		"Refused":  {"the API server refused it", func(s *scene) { s.answers = []error{refused} }, input.ReloadFailed, "could not roll out configmap/app"},
		"Overtaken": {
			"another writer was faster, and what was said before still stands", func(s *scene) { s.answers = []error{conflict} },
			input.QuietWindow, "before",
		},
		"Moved":    {"it was given what exists", func(*scene) {}, "", ""},
		"InStep":   {"the wait has ended without a patch", func(s *scene) { s.findings = []input.Finding{inStep(app)} }, input.InStep, ""},
		"Baseline": {"it counts as given", func(s *scene) { s.findings = []input.Finding{recorded(app, input.Baseline)} }, input.InStep, ""},
		"Observed": {"it counts as given", func(s *scene) { s.workload.Annotations[settings.Observe] = "true" }, input.InStep, ""},
		"Missing": {
			"a restart would break the pods", func(s *scene) { s.findings = []input.Finding{barred(missing(app), input.Missing, "")} },
			input.Missing, "does not exist",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.entry = &record.Entry{
				ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}},
				Decision: record.NewDecision(input.QuietWindow, "before", ago(time.Hour), time.Time{}),
			}
			tc.change(s)
			if _, err := s.loop().Reconcile(t.Context(), web("web")); err != nil && tc.want != input.ReloadFailed {
				t.Fatal(err)
			}
			if got := s.entry.Decision; got.Reason != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%s: on record is %+v", tc.reason, got)
			}
		})
	}
}

// TestADecisionIsWrittenOnce: a look that finds the same again writes nothing, and tells
// since when it is so.
func TestADecisionIsWrittenOnce(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
	s.workload.Annotations[settings.Hold] = "freeze"
	loop := s.loop()
	look := func() {
		t.Helper()
		if _, err := loop.Reconcile(t.Context(), web("web")); err != nil {
			t.Fatal(err)
		}
	}
	look()
	first, writes := s.entry.Decision, s.recorded
	s.clock = s.clock.Add(time.Hour)
	look()
	if s.recorded != writes || s.entry.Decision != first {
		t.Errorf("%d more writes; on record is %+v, and was %+v", s.recorded-writes, s.entry.Decision, first)
	}
	s.workload.Annotations[settings.Hold] = "holidays"
	look()
	if got := s.entry.Decision; !strings.Contains(got.Message, "holidays") || got.Since != first.Since {
		t.Errorf("the reason is the same, and on record is %+v, where it was %+v", got, first)
	}
}

// TestABurstIsWrittenOnceAMinute: while the content keeps changing, the record says which version was due when the wait
// began, or a minute ago. Another input that is due, or one that no longer is, is written at once.
func TestABurstIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}, db: {Version: v1}}}
	loop := s.loop()
	look := func(after time.Duration, wrote bool, dueNow ...input.Finding) {
		t.Helper()
		s.clock, s.recorded, s.findings = now.Add(after), 0, nil
		content := strings.Repeat(fmt.Sprintf("%02.0f", after.Seconds()), 16)
		for _, f := range dueNow {
			f.ChangedAt, f.Current.Sum = s.clock, content
			s.findings = append(s.findings, f)
		}
		if len(dueNow) == 1 {
			s.findings = append(s.findings, inStep(db))
		}
		if _, err := loop.Reconcile(t.Context(), web("web")); err != nil {
			t.Fatal(err)
		}
		current := content[:10]
		if got := s.entry.Inputs[app].Due == current && strings.Contains(s.entry.Decision.Message, current); (s.recorded > 0) != wrote || got != wrote {
			t.Errorf("after %s: written %d times, want %t; on record is %+v", after, s.recorded, wrote, *s.entry)
		}
	}
	look(0, true, due(app, 0))
	look(time.Second, false, due(app, 0))
	look(4*time.Second, false, due(app, 0))
	look(6*time.Second, false, due(app, 0))
	look(7*time.Second, true, due(app, 0), due(db, 0))
	look(8*time.Second, false, due(app, 0), due(db, 0))
	look(9*time.Second, true, due(app, 0))
}

// TestALongWaitIsOnRecord: however long the quiet window is, the record is no more than a minute behind. Where only the
// maximum delay ends the wait, it doesn't tell when it was written, so each change is put on record after the first minute.
func TestALongWaitIsOnRecord(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.workload.Annotations[settings.Quiet] = "1h"
	s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
	loop := s.loop()
	for _, step := range []struct {
		after time.Duration
		wrote bool
	}{{0, true}, {20 * time.Second, false}, {59 * time.Second, false}, {time.Minute, true}, {70 * time.Second, true}} {
		s.clock, s.recorded = now.Add(step.after), 0
		f := due(app, 0)
		f.ChangedAt, f.Current.Sum = s.clock, strings.Repeat(fmt.Sprintf("%03.0f", step.after.Seconds()), 10)
		s.findings = []input.Finding{f}
		if _, err := loop.Reconcile(t.Context(), web("web")); err != nil {
			t.Fatal(err)
		}
		if (s.recorded > 0) != step.wrote {
			t.Errorf("after %s: written %d times, want %t; on record is %+v", step.after, s.recorded, step.wrote, *s.entry)
		}
	}
}

// TestNextLook: a time is on record only where time alone changes something, and a look that
// came and changed nothing announces the next.
func TestNextLook(t *testing.T) {
	t.Parallel()
	d := Decision{Verb: Wait, Reason: input.QuietWindow, Message: "app"}
	first := d.onRecord(record.Decision{}, now, 5*time.Second)
	if want := now.Add(5 * time.Second); first.Next != want || first.Since != now {
		t.Errorf("on record is %+v, want a look at %s", first, want)
	}
	if again := d.onRecord(first, now.Add(time.Second), 5*time.Second); again != first {
		t.Errorf("a look before its time gives %+v, want %+v", again, first)
	}
	if often := d.onRecord(first, now.Add(6*time.Second), 5*time.Second); often != first {
		t.Errorf("a look every few seconds would write each time: %+v", often)
	}
	if late := d.onRecord(first, now.Add(6*time.Second), 5*time.Minute); late.Next != now.Add(5*time.Minute+6*time.Second) || late.Since != now {
		t.Errorf("a look after its time gives %+v", late)
	}
	if held := (Decision{Verb: Hold, Reason: input.Held}).onRecord(first, now, 0); !held.Next.IsZero() {
		t.Errorf("only an event ends a hold, and a look is announced for %s", held.Next)
	}
}

// TestMistakesTakeRoomToo: what a tenant writes wrong does not fill the record, and does not
// replace what is still needed.
func TestMistakesTakeRoomToo(t *testing.T) {
	t.Parallel()
	other := &record.Entry{ID: web("web").ID(), UID: "an earlier one", Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
	cases := map[string]struct {
		reason   string
		change   func(*scene)
		recorded int
	}{
		"New":     {"there is room", func(*scene) {}, 1},
		"Full":    {"there is none", func(s *scene) { s.full = "no room" }, 0},
		"Earlier": {"the pods of another workload of its name may be taken over", func(s *scene) { s.entry = other }, 0},
		"Left": {"its namespace may ask for it, and could not be read", func(s *scene) {
			s.entry = &record.Entry{UID: "4711", Presence: record.Presence{Left: true}, Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
		}, 0},
		"TooNew": {"a newer program wrote it", func(s *scene) { s.entry = &record.Entry{Unstored: record.Unstored{TooNew: true}} }, 0},
		"Lost":   {"a person may want to look at what cannot be read", func(s *scene) { s.entry = &record.Entry{Unstored: record.Unstored{Lost: true}} }, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.workload.Annotations[settings.Quiet] = "soon"
			tc.change(s)
			if _, err := s.loop().Reconcile(t.Context(), web("web")); err != nil {
				t.Fatal(err)
			}
			if s.recorded != tc.recorded {
				t.Errorf("%s: recorded %d times", tc.reason, s.recorded)
			}
		})
	}
}

// TestKnownMistakesTakeRoomToo: the message of a workload on record is left out when it would
// push others out of the record.
func TestKnownMistakesTakeRoomToo(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
	s.workload.Annotations[settings.Quiet] = "soon"
	s.full = "no room"
	loop := s.loop()
	if _, err := loop.Reconcile(t.Context(), web("web")); err != nil {
		t.Fatal(err)
	}
	if d := s.entry.Decision; d.Reason != input.InvalidAnnotation || d.Message != "" {
		t.Errorf("on record is %+v", d)
	}
	if _, err := loop.Reconcile(t.Context(), web("web")); err != nil || s.recorded != 1 {
		t.Errorf("a second look records it again: %d times, error %v", s.recorded, err)
	}
}

// TestOnlyAMistakeWasOnRecord: it goes with the mistake, and what a newer program noted stays.
func TestOnlyAMistakeWasOnRecord(t *testing.T) {
	t.Parallel()
	for _, foreign := range []bool{false, true} {
		s := newScene()
		s.blind, s.findings = true, nil
		s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Decision: record.NewDecision(input.InvalidAnnotation, "soon", ago(time.Hour), time.Time{})}
		if foreign {
			s.entry.Foreign.Inputs = map[string]json.RawMessage{"volume/data": []byte(`"1"`)}
		}
		if _, err := s.loop().Reconcile(t.Context(), web("web")); err != nil {
			t.Fatal(err)
		}
		if (s.entry != nil) != foreign {
			t.Errorf("foreign=%t: on record is %+v", foreign, s.entry)
		}
	}
}

// TestNotInStepWithoutAnythingDue: nothing can be moved, and all is not well.
func TestNotInStepWithoutAnythingDue(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		findings []input.Finding
		warnings []input.Warning
		want     input.Reason
	}{
		"Missing":    {"a required source is gone", []input.Finding{barred(missing(app), input.Missing, "")}, nil, input.Missing},
		"Unresolved": {"the registry refuses", []input.Finding{inStep(app)}, []input.Warning{{Reason: input.Unresolved, Text: "denied"}}, input.Unresolved},
		"Failed":     {"an image failed and stays", []input.Finding{inStep(app)}, []input.Warning{{Reason: input.RolloutFailed, Text: "failed"}}, input.RolloutFailed},
		"Other":      {"a warning stops nothing", []input.Finding{inStep(app)}, []input.Warning{{Reason: input.SourceUnknown}}, input.InStep},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Decide(Observation{Intent: auto(), Assessment: input.Assessment{Findings: tc.findings, Warnings: tc.warnings}, Now: now})
			if d.Verb != Leave || d.Reason != tc.want {
				t.Errorf("%s: %s %s", tc.reason, d.Verb, d.Reason)
			}
		})
	}
}

// TestForcedOntoAMissingSource: whoever rolls by hand is told, as the controller is.
func TestForcedOntoAMissingSource(t *testing.T) {
	t.Parallel()
	d := Decide(Observation{Intent: auto(), Assessment: input.Assessment{Findings: []input.Finding{barred(missing(app), input.Missing, ""), inStep(db)}}, Now: now, Force: ForceRollOut})
	if d.Verb != Hold || d.Reason != input.Missing {
		t.Errorf("%s %s: %s", d.Verb, d.Reason, d.Message)
	}
}
