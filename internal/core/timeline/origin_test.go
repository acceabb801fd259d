package timeline_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

func TestReverted(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	set := func(name string, number int64, digest string, earlier ...int64) timeline.Revision {
		r := timeline.Revision{Name: name, Number: number, Earlier: earlier, Created: at(int(number))}
		if digest != "" {
			r.Shown = input.Shown{app: shows(digest)}.Marks()
		}
		return r
	}
	made := func(name string, second int, digest string) timeline.Revision {
		r := set(name, 0, digest)
		r.Created = at(second)
		return r
	}
	current := func(r timeline.Revision) timeline.Revision {
		r.Current = true
		return r
	}
	cases := map[string]struct {
		reason    string
		from      timeline.Origin
		revisions []timeline.Revision
		want      string // the revision that it was reverted to, empty when it was not
	}{
		"Given":           {"the revision that was made for it", timeline.AfterNumber(1), []timeline.Revision{set("a", 1, ""), current(set("b", 2, "2"))}, ""},
		"Undone":          {"an undo gives the old ReplicaSet a new number", timeline.AfterNumber(1), []timeline.Revision{current(set("a", 3, "", 1)), set("b", 2, "2")}, "a"},
		"NotRenumbered":   {"the number follows a moment later", timeline.AfterNumber(1), []timeline.Revision{current(set("a", 1, "")), set("b", 2, "2")}, "a"},
		"Redone":          {"its revision is current again", timeline.AfterNumber(1), []timeline.Revision{set("a", 3, "", 1), current(set("b", 4, "2", 2))}, ""},
		"Restarted":       {"a revision that is new has loaded it", timeline.AfterNumber(1), []timeline.Revision{set("a", 3, "", 1), current(set("c", 4, ""))}, ""},
		"OfAnother":       {"the revision before another input's rollout was given this one", timeline.AfterNumber(1), []timeline.Revision{set("a", 1, ""), current(set("b", 4, "2", 2)), set("c", 3, "2")}, ""},
		"WentBack":        {"content that goes back uses its old revision again", timeline.AfterNumber(2), []timeline.Revision{current(set("a", 3, "2", 1)), set("b", 2, "1")}, ""},
		"AnotherVersion":  {"the earlier revision was given another one", timeline.AfterNumber(2), []timeline.Revision{current(set("a", 4, "1", 2)), set("b", 3, "2")}, "a"},
		"NoEvidence":      {"a baseline was given by no rollout", "", []timeline.Revision{current(set("a", 1, ""))}, ""},
		"NoCurrent":       {"nobody knows what pods are made from", timeline.AfterNumber(9), []timeline.Revision{set("a", 1, "")}, ""},
		"NoNumber":        {"a ReplicaSet that nobody has numbered yet", timeline.AfterNumber(9), []timeline.Revision{current(set("a", 0, ""))}, ""},
		"Named":           {"a StatefulSet is back at the very revision", timeline.AfterName("db-a"), []timeline.Revision{current(made("db-a", 5, "")), made("db-b", 6, "2")}, "db-a"},
		"OlderThanNamed":  {"or at one before it", timeline.AfterName("db-b"), []timeline.Revision{current(made("db-a", 5, "")), made("db-b", 6, "1"), made("db-c", 7, "2")}, "db-a"},
		"NewerThanNamed":  {"or at one that came later", timeline.AfterName("db-a"), []timeline.Revision{made("db-a", 5, ""), current(made("db-b", 6, ""))}, ""},
		"NamedIsGone":     {"the history is short, and nothing is certain", timeline.AfterName("db-z"), []timeline.Revision{current(made("db-a", 5, ""))}, ""},
		"OlderThanWrite":  {"a DaemonSet is back at a revision from before the write", timeline.AfterTime(at(6)), []timeline.Revision{current(made("a", 5, "")), made("b", 6, "2")}, "a"},
		"SameSecond":      {"times are a second coarse: no evidence", timeline.AfterTime(at(6)), []timeline.Revision{current(made("a", 6, "")), made("b", 6, "2")}, ""},
		"GaveItAgain":     {"the rollout that gave it had used an earlier revision again", timeline.AfterNumber(2), []timeline.Revision{current(set("a", 5, "", 1, 3)), set("b", 2, ""), set("c", 4, "")}, ""},
		"BeforeItGave":    {"and one that came in between was there before", timeline.AfterNumber(2), []timeline.Revision{set("a", 3, "", 1), current(set("b", 4, "", 2))}, "b"},
		"NamedGiver":      {"so it is for a StatefulSet", timeline.AfterName("db-b").By("db-a"), []timeline.Revision{current(made("db-a", 5, "")), made("db-b", 6, "")}, ""},
		"BeforeNamed":     {"and to one that did not give it", timeline.AfterName("db-b").By("db-a"), []timeline.Revision{made("db-a", 5, ""), current(made("db-b", 6, ""))}, "db-b"},
		"TimedGiver":      {"and for a DaemonSet", timeline.AfterTime(at(8)).By("a"), []timeline.Revision{current(made("a", 5, "")), made("b", 6, "")}, ""},
		"BeforeTimed":     {"there too", timeline.AfterTime(at(8)).By("a"), []timeline.Revision{made("a", 5, ""), current(made("b", 6, ""))}, "b"},
		"ShowsTheCurrent": {"it shows what exists", timeline.AfterTime(at(6)), []timeline.Revision{current(made("a", 5, "2"))}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, back := tc.from.Reverted(app, shows("2"), tc.revisions)
			if back != (tc.want != "") || back && to != tc.want {
				t.Errorf("%s: reverted %t to %q, want %q", tc.reason, back, to, tc.want)
			}
		})
	}
}

func TestBefore(t *testing.T) {
	t.Parallel()
	if got := (timeline.Revision{Number: 7}).Before(); got != timeline.AfterNumber(6) {
		t.Errorf("what revision 7 was made for came after %q, want 6", got)
	}
	if got := (timeline.Revision{Created: at(6)}).Before(); got != timeline.AfterTime(at(6)) {
		t.Errorf("what a revision without a number was made for came after %q", got)
	}
}

func TestIsUsedAgain(t *testing.T) {
	t.Parallel()
	again, first := timeline.Revision{Number: 3, Earlier: []int64{1}}, timeline.Revision{Number: 2}
	current := func(r timeline.Revision) timeline.Revision { r.Current = true; return r }
	cases := map[string]struct {
		reason    string
		revisions []timeline.Revision
		want      bool
	}{
		"Undone": {"an earlier one is current", []timeline.Revision{current(again), first}, true},
		"New":    {"the current one is new; another one was used twice", []timeline.Revision{again, current(first)}, false},
		"None":   {"nothing is known", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := timeline.IsUsedAgain(tc.revisions); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}
