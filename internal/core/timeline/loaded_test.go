package timeline_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// TestLoaded: a rollout, as template write 40, and a write of its input at second 20.
func TestLoaded(t *testing.T) {
	t.Parallel()
	down := func(content, template timeline.Bounds) func(*timeline.Timeline) {
		return func(t *timeline.Timeline) {
			t.Workload.Template, t.Input.Content, t.Input.WrittenAt, t.Record.Unaccounted = template, content, at(20), true
		}
	}
	asked := func(created time.Time, written uint64, starts pods.Starts) func(*timeline.Timeline) {
		return func(t *timeline.Timeline) {
			t.Past = timeline.Past{Asked: true, Starts: starts, Revisions: []timeline.Revision{{Created: created, Written: written, Current: true}, {Created: at(50), Written: 90}}}
		}
	}
	after := pods.Starts{Asked: true, Created: at(30), Accepted: at(30), Started: at(31), Version: 80}
	before := pods.Starts{Asked: true, Created: at(10), Accepted: at(10), Started: at(11), Version: 80}
	inThatSecond := func(version uint64) pods.Starts {
		return pods.Starts{Asked: true, Created: at(20), Accepted: at(20), Started: at(20), Version: version}
	}
	waits := func(t *timeline.Timeline) { t.Record.Waits, t.Record.Unaccounted = true, false }

	olderPods := func(t *timeline.Timeline) { t.Workload.OlderPods = true }

	cases := map[string]struct {
		reason string
		do     []func(*timeline.Timeline)
		want   timeline.Answer
	}{
		"TemplateLater":          {"a watch saw it", []func(*timeline.Timeline){down(exactly(30), exactly(40))}, timeline.Yes},
		"ContentLater":           {"a watch saw it", []func(*timeline.Timeline){down(exactly(50), exactly(40))}, timeline.No},
		"Unrevised":              {"a template that leads to no revision starts no pods", []func(*timeline.Timeline){down(exactly(30), exactly(40)), func(t *timeline.Timeline) { t.Workload.Unrevised = true }}, timeline.No},
		"Nothing":                {"the template is on record, so that there was no rollout", []func(*timeline.Timeline){down(upTo(50), upTo(60)), func(t *timeline.Timeline) { t.Record.Unaccounted = false }}, timeline.No},
		"Down":                   {"revisions may show it", []func(*timeline.Timeline){down(upTo(50), upTo(60))}, timeline.Unknown},
		"Gap":                    {"so they may when both came with one list", []func(*timeline.Timeline){down(timeline.Bounds{Min: 35, Max: 50}, timeline.Bounds{Min: 35, Max: 60})}, timeline.Unknown},
		"RevisionLater":          {"a key may have been removed since, and only pods can tell", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(21), 55, pods.Starts{})}, timeline.Unknown},
		"RevisionLaterPods":      {"the revision is younger than the content, and its pods were written later", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(21), 55, inThatSecond(56))}, timeline.Yes},
		"RevisionLaterCut":       {"a key was removed after a pod's last write, which left no time", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(21), 55, inThatSecond(49))}, timeline.No},
		"RevisionLaterNotListed": {"the permission is missing: only the revision shows it", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(21), 55, pods.Starts{Asked: true, Unknown: true})}, timeline.Yes},
		"RevisionOfOurPatch": {"our patch was decided on other content, so a key may have been removed after its pods had started", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(21), 55, inThatSecond(56)), func(t *timeline.Timeline) {
			t.Workload.RolledOutAt, t.Workload.Shows, t.Input.Shows = at(21), shows("1"), shows("2")
		}}, timeline.No},
		"RevisionTie":     {"only pods can tell", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(20), 55, pods.Starts{})}, timeline.Unknown},
		"RevisionOlder":   {"it was used again, and its pods may be new", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(10), 55, pods.Starts{})}, timeline.Unknown},
		"NoTime":          {"the managed fields were removed", []func(*timeline.Timeline){down(upTo(50), upTo(60)), func(t *timeline.Timeline) { t.Input.WrittenAt = time.Time{} }, asked(at(21), 55, after)}, timeline.No},
		"Unmarked":        {"a later write left no time: a key was removed", []func(*timeline.Timeline){down(upTo(70), upTo(60)), asked(at(21), 55, pods.Starts{Asked: true, Created: at(21), Accepted: at(21), Version: 56})}, timeline.No},
		"Sealed":          {"the content of an immutable object stays, whatever else is written", []func(*timeline.Timeline){down(upTo(70), upTo(60)), asked(at(21), 55, inThatSecond(56)), func(t *timeline.Timeline) { t.Input.Sealed = true }}, timeline.Yes},
		"PodsLater":       {"they started after it", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(20), 55, after)}, timeline.Yes},
		"PodsBefore":      {"they started before it", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(20), 55, before)}, timeline.No},
		"NotListed":       {"the permission is missing", []func(*timeline.Timeline){down(upTo(50), upTo(60)), asked(at(20), 55, pods.Starts{Asked: true, Unknown: true})}, timeline.No},
		"Waits":           {"its pods started with what it was made with, or with what is in it now", []func(*timeline.Timeline){down(exactly(50), exactly(40)), waits}, timeline.Unknown},
		"WaitsDown":       {"the template on record shows that nothing else started pods", []func(*timeline.Timeline){down(upTo(50), upTo(40)), waits}, timeline.Unknown},
		"WaitsPods":       {"they started after the last write", []func(*timeline.Timeline){down(exactly(50), exactly(40)), asked(at(10), 41, after), waits}, timeline.Yes},
		"WaitsPodsBefore": {"they started before it", []func(*timeline.Timeline){down(exactly(50), exactly(40)), asked(at(10), 41, before), waits}, timeline.No},
		"OlderPods":       {"pods of the revision may have run since before the content", []func(*timeline.Timeline){down(exactly(30), exactly(40)), olderPods}, timeline.Unknown},
		"OlderPodsNew": {"the revision is new with the template, and so is each of its pods", []func(*timeline.Timeline){down(exactly(30), exactly(40)), olderPods, func(t *timeline.Timeline) {
			t.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(20), Number: 2, Written: 41, Current: true}}}
		}}, timeline.Yes},
		"OlderPodsAgain": {"the revision is used again, and its pods tell", []func(*timeline.Timeline){down(exactly(30), exactly(40)), olderPods, func(t *timeline.Timeline) {
			t.Past = timeline.Past{Asked: true, Starts: before, Revisions: []timeline.Revision{{Created: at(10), Number: 3, Earlier: []int64{1}, Written: 41, Current: true}}}
		}}, timeline.No},
		"OlderPodsNone": {"a ControllerRevision has no number", []func(*timeline.Timeline){down(exactly(30), exactly(40)), olderPods, func(t *timeline.Timeline) {
			t.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(20), Written: 41, Current: true}}}
		}}, timeline.Unknown},
		"OlderPodsUntouched": {"the revision was last written before the template", []func(*timeline.Timeline){down(exactly(30), exactly(40)), olderPods, func(t *timeline.Timeline) {
			t.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(10), Number: 2, Written: 39, Current: true}}}
		}}, timeline.Unknown},
		"OlderPodsUndone": {"the content went back with the rollout", []func(*timeline.Timeline){down(exactly(30), exactly(40)), olderPods, func(t *timeline.Timeline) {
			t.Input.Version, t.Record.Was, t.Record.From = "1", "1", timeline.AfterNumber(1)
			t.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(10), Number: 3, Earlier: []int64{1}, Written: 41, Current: true}}}
		}}, timeline.Yes},
		"TakenOverAdopted": {"the controller of the new workload wrote the revision, whose pods are older", []func(*timeline.Timeline){down(upTo(50), exactly(60)), func(t *timeline.Timeline) {
			t.Workload.Unrevised, t.Record.TakenOver = true, true
			t.Past = timeline.Past{Asked: true, Starts: before, Revisions: []timeline.Revision{{Created: at(10), Number: 2, Written: 61, Current: true}}}
		}}, timeline.No},
		"TakenOverUndone": {"the content went back after the rollout, while nobody owned the pods", []func(*timeline.Timeline){down(upTo(50), exactly(60)), func(t *timeline.Timeline) {
			t.Workload.Unrevised, t.Record.TakenOver = true, true
			t.Input.Version, t.Record.Was, t.Record.From = "1", "1", timeline.AfterNumber(1)
			t.Past = timeline.Past{Asked: true, Starts: before, Revisions: []timeline.Revision{{Created: at(10), Number: 3, Earlier: []int64{1}, Written: 61, Current: true}}}
		}}, timeline.No},
		"TakenOver": {"the workload is younger than its pods, which tell", []func(*timeline.Timeline){down(upTo(50), exactly(60)), asked(at(10), 55, before), func(t *timeline.Timeline) { t.Workload.Unrevised, t.Record.TakenOver = true, true }}, timeline.No},
		"TakenOverSame": {"its pods went on, and nothing rolled them out", []func(*timeline.Timeline){down(upTo(50), exactly(60)), asked(at(10), 55, pods.Starts{Asked: true}), func(t *timeline.Timeline) {
			t.Workload.Unrevised, t.Record.TakenOver, t.Record.Unaccounted = true, true, false
		}}, timeline.No},
		"TakenOverNew": {"its pods are younger than the content", []func(*timeline.Timeline){down(upTo(50), exactly(60)), asked(at(10), 55, after), func(t *timeline.Timeline) { t.Workload.Unrevised, t.Record.TakenOver = true, true }}, timeline.Yes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := moved()
			for _, do := range tc.do {
				do(&line)
			}
			if got := line.Loaded(); got != tc.want {
				t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
