package timeline_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// TestMayHaveDeliveredAnother: another writer's rollout came while the controller was down, and the content
// equals the version on record.
func TestMayHaveDeliveredAnother(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason  string
		change  func(*timeline.Timeline)
		another bool
	}{
		"Before":  {"the content was last written before the record", func(*timeline.Timeline) {}, false},
		"After":   {"it may have changed and changed back", func(l *timeline.Timeline) { l.Input.WrittenAt = start.Add(time.Hour) }, true},
		"NoTime":  {"a key was added and removed with its manager, which leaves the time of an earlier write", func(l *timeline.Timeline) { l.Input.Content.Max = 70 }, true},
		"Unknown": {"the record isn't stored yet", func(l *timeline.Timeline) { l.Input.Content.Max, l.Record.Version = 70, 0 }, false},
		"Watched": {"a watch saw that it came before the record, and only the age of pods leaves open what they run", func(l *timeline.Timeline) { l.Input.Content.Min = 50 }, false},
		"WatchedInThatSecond": {"another writer's rollout may have loaded another content in that second", func(l *timeline.Timeline) {
			l.Input.Content.Min, l.Input.WrittenAt = 50, start.Add(time.Minute)
		}, true},
		"Sealed": {"the content of an immutable object doesn't change", func(l *timeline.Timeline) { l.Input.Content.Max, l.Input.Sealed = 70, true }, false},
	} {
		l := timeline.Timeline{
			Workload: timeline.Workload{Template: timeline.Bounds{Max: 80}},
			Input:    timeline.Input{WrittenAt: start, Content: timeline.Bounds{Max: 50}},
			Record:   timeline.Record{Known: true, Unaccounted: true, AsOf: start.Add(time.Minute), Version: 60},
		}
		tc.change(&l)
		if got := l.MayHaveDeliveredAnother(); got != tc.another {
			t.Errorf("%s: %s: %t, want %t", name, tc.reason, got, tc.another)
		}
	}
}

// TestDeliveredThis: our own patch isn't on record, and the template shows the current version.
func TestDeliveredThis(t *testing.T) {
	t.Parallel()
	patched := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	mark := input.Tracked("1")
	app := input.ConfigMap("app")
	revision := func(text string, current bool) timeline.Revision {
		return timeline.Revision{Text: text, Current: current, Shown: input.Shown{app: mark}.Marks()}
	}
	for name, tc := range map[string]struct {
		reason    string
		rewritten bool
		past      timeline.Past
		want      bool
	}{
		"Ours":      {"nothing was written later", false, timeline.Past{}, true},
		"Unasked":   {"the template may have been written later", true, timeline.Past{}, false},
		"Rewritten": {"another revision kept the marks of ours", true, timeline.Past{Asked: true, Revisions: []timeline.Revision{revision("a", false), revision("a", true)}}, false},
		"Other":     {"another field of the same manager was written, as its abort", true, timeline.Past{Asked: true, Revisions: []timeline.Revision{revision("b", false), revision("a", true)}}, true},
	} {
		l := timeline.Timeline{
			ID:       app,
			Workload: timeline.Workload{RolledOutAt: patched, Shows: mark, Rewritten: tc.rewritten},
			Input:    timeline.Input{Shows: mark}, Past: tc.past,
		}
		if got := l.DeliveredThis(); got != tc.want {
			t.Errorf("%s: %s: %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}
