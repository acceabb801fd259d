package timeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// exactly is a write that a watch delivered, upTo one that was found by a list.
func exactly(rv uint64) timeline.Bounds { return timeline.Bounds{Min: rv, Max: rv} }
func upTo(rv uint64) timeline.Bounds    { return timeline.Bounds{Max: rv} }

func at(second int) time.Time { return time.Date(2026, 11, 15, 3, 0, second, 0, time.UTC) }

func shows(digest string) input.Mark { return input.Tracked(digest) }

// answers are the questions with the answer yes.
func answers(t timeline.Timeline) []string {
	var yes []string
	for _, q := range []struct {
		name string
		is   bool
	}{
		{"ChangedSinceFollowed", t.ChangedSinceFollowed()},
		{"RolledOutSince", t.Loaded() == timeline.Yes},
		{"MayHaveGivenAnother", t.MayHaveDeliveredAnother()},
		{"MadeUnseen", t.MadeUnseen()},
		{"ChangedAfterUnseenStart", t.ChangedAfterUnseenStart()},
		{"IsUnwatched", t.IsUnwatched()},
		{"HasUnrecordedPatch", t.HasUnrecordedPatch()},
		{"DeliveredAnother", t.DeliveredAnother()},
		{"IsDeliveringAnother", t.IsDeliveringAnother()},
		{"DeliveredUnrecorded", t.DeliveredUnrecorded()},
		{"ShowsEarlier", t.ShowsEarlier()},
	} {
		if q.is {
			yes = append(yes, q.name)
		}
	}
	return yes
}

// madeUnseen is a workload that was made at second 10, while the controller was down,
// and its input, which was written at second 20.
func madeUnseen() timeline.Timeline {
	return timeline.Timeline{
		ID: input.ConfigMap("app"), Following: at(5), Begun: true,
		Workload: timeline.Workload{Created: at(10), Template: upTo(40), Asked: upTo(40), AskedAt: at(10), Listed: upTo(60)},
		Input:    timeline.Input{Created: at(1), WrittenAt: at(20), Content: upTo(50), Shows: shows("2")},
		Past:     timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(11)}}},
	}
}

// moved is a workload that was moved to version 1 at second 10, as revision 5.
func moved() timeline.Timeline {
	return timeline.Timeline{
		ID:       input.ConfigMap("app"),
		Workload: timeline.Workload{Template: exactly(40), RolledOutAt: at(10), Shows: shows("1")},
		Input:    timeline.Input{Content: exactly(30), Shows: shows("1")},
		Record:   timeline.Record{Known: true, Shown: shows("1"), RolledOutAt: at(10), Accounted: 5},
	}
}

// revision shows a digest, after which a word may follow that a patch has added.
func revision(number int64, created time.Time, digest string) timeline.Revision {
	shown, again, _ := strings.Cut(digest, " ")
	return timeline.Revision{Number: number, Created: created, Shown: input.Shown{input.ConfigMap("app"): shows(shown)}.Marks(), Text: shown + again}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		base   func() timeline.Timeline
		change func(*timeline.Timeline)
		want   []string
	}{
		"InStep": {"the rollout came after the change", moved, func(*timeline.Timeline) {}, []string{"RolledOutSince"}},
		"KeptPods": {"the rollout before it was stuck, and its revision is older than the content: its pods may have gone on", moved, func(t *timeline.Timeline) {
			t.Workload.OlderPods, t.Input.WrittenAt = true, at(20)
			t.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(10), Current: true}, {Created: at(15)}}}
		}, nil},
		"UndoneTogether": {"the content was undone with the rollout, so that they have it", moved, func(t *timeline.Timeline) {
			t.Workload.OlderPods, t.Input.WrittenAt, t.Input.Version = true, at(20), "1"
			t.Record.From, t.Record.Was = timeline.AfterNumber(1), "1"
			t.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(10), Number: 3, Earlier: []int64{1}, Current: true}, {Created: at(15), Number: 2}}}
		}, []string{"RolledOutSince"}},
		"UndoneFurther": {"to a revision before the one that had it", moved, func(t *timeline.Timeline) {
			t.Workload.OlderPods, t.Input.WrittenAt, t.Input.Version = true, at(20), "1"
			t.Record.From, t.Record.Was = timeline.AfterNumber(2), "1"
			t.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(10), Number: 4, Earlier: []int64{1}, Current: true}, {Created: at(15), Number: 2}, {Created: at(16), Number: 3}}}
		}, nil},
		"NewPods": {"the revision is new, and so is every pod of it", moved, func(t *timeline.Timeline) {
			t.Workload.OlderPods, t.Input.WrittenAt = true, at(20)
			t.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(10), Number: 1}, {Created: at(20), Number: 2, Written: 50, Current: true}}}
		}, []string{"RolledOutSince"}},
		"NoneLeft": {"no pod of it was left when it was used again", moved, func(t *timeline.Timeline) {
			t.Input.WrittenAt = at(20)
			t.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: at(10), Current: true}, {Created: at(15)}}}
		}, []string{"RolledOutSince"}},
		"Delivering": {"a series of evictions has begun for another version", moved, func(t *timeline.Timeline) {
			t.Record.Delivering = shows("2")
		}, []string{"RolledOutSince", "IsDeliveringAnother"}},
		"GivingThis": {"a series has begun for what exists", moved, func(t *timeline.Timeline) {
			t.Record.Delivering = shows("1")
		}, []string{"RolledOutSince"}},
		"Unrevised": {"a template that leads to no revision, because of a pause or because it was changed back, restarts no pod", moved, func(t *timeline.Timeline) {
			t.Workload.Unrevised = true
		}, nil},
		"Changed": {"a watch saw the change after the template", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Input.Shows = exactly(50), shows("2")
		}, []string{"ChangedSinceFollowed"}},
		"ChangedAfterAnothersRollout": {"its pods may have loaded what was before the change", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Record.Unaccounted = exactly(50), true
		}, []string{"ChangedSinceFollowed", "MayHaveGivenAnother"}},
		"WrittenWhileDown": {"after a rollout, and the controller was down", moved, func(t *timeline.Timeline) {
			t.Workload.Template, t.Record.Unaccounted = upTo(40), true
			t.Input.Content, t.Input.WrittenAt = upTo(50), at(21)
		}, []string{"MayHaveGivenAnother", "IsUnwatched"}},
		"WrittenBeforeItsRecord": {"an undo may leave no time, and the write is on record", moved, func(t *timeline.Timeline) {
			t.Workload.Template, t.Record.Unaccounted = upTo(40), true
			t.Input.Content, t.Input.WrittenAt, t.Record.AsOf = upTo(50), at(8), at(9)
		}, []string{"IsUnwatched"}},
		"InGap": {"a list shows the content of before, and the record took in a template of the gap earlier", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Input.Missed = timeline.Bounds{Max: 50}, timeline.Bounds{Min: 31, Max: 50}
			t.Input.WrittenAt, t.Record.AsOf = at(8), at(9)
		}, []string{"MayHaveGivenAnother", "IsUnwatched"}},
		"BeforeTheGap": {"the template is older", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Input.Missed = timeline.Bounds{Max: 50}, timeline.Bounds{Min: 41, Max: 50}
		}, []string{"IsUnwatched"}},
		"AfterTheGap": {"the template is younger", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Input.Missed = timeline.Bounds{Max: 39}, timeline.Bounds{Min: 31, Max: 39}
		}, []string{"RolledOutSince", "IsUnwatched"}},
		"AnothersRolloutSince": {"they have loaded what exists", moved, func(t *timeline.Timeline) {
			t.Record.Unaccounted = true
		}, []string{"RolledOutSince"}},
		"AskedLater": {"who asks after the change is not followed before", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Workload.Asked = exactly(50), exactly(60)
		}, nil},
		"SourceAskedLater": {"also when the source asks", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Input.Asked = exactly(50), exactly(60)
		}, nil},
		"ListedLater": {"a kind that is followed since now was not before", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Workload.Listed = exactly(50), upTo(60)
		}, nil},
		"ListedButYounger": {"a workload that is younger than the following of its kind was followed from its start", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Workload.Listed = exactly(50), upTo(60)
			t.Workload.Created, t.Following, t.Begun = at(9), at(5), true
		}, []string{"ChangedSinceFollowed"}},
		"OrderInDoubt": {"a list shows both, in no order", moved, func(t *timeline.Timeline) {
			t.Input.Content, t.Workload.Template = upTo(50), upTo(60)
		}, []string{"IsUnwatched"}},
		"Undone": {"the template shows an earlier version again", moved, func(t *timeline.Timeline) {
			t.Workload.Shows, t.Workload.RolledOutAt = shows("0"), time.Time{}
		}, []string{"RolledOutSince", "ShowsEarlier"}},
		"Wiped": {"a deployment tool wiped our annotation", moved, func(t *timeline.Timeline) {
			t.Workload.Shows, t.Workload.RolledOutAt = input.Mark{}, time.Time{}
		}, []string{"RolledOutSince"}},
		"UnrecordedPatch": {"killed between the patch and the record", moved, func(t *timeline.Timeline) {
			t.Record.RolledOutAt, t.Record.Shown = at(3), shows("0")
		}, []string{"RolledOutSince", "HasUnrecordedPatch", "DeliveredUnrecorded"}},
		"UnrecordedInTheSameSecond": {"two patches bear the same time, and show different versions", moved, func(t *timeline.Timeline) {
			t.Record.Shown = shows("0")
		}, []string{"RolledOutSince", "HasUnrecordedPatch", "DeliveredUnrecorded"}},
		"WentBackUnrecorded": {"then the content went back", moved, func(t *timeline.Timeline) {
			t.Record.RolledOutAt, t.Record.Shown = at(3), shows("0")
			t.Input.Content, t.Input.Shows = upTo(50), shows("0")
		}, []string{"IsUnwatched", "HasUnrecordedPatch", "DeliveredAnother"}},
		"DeliveredByUnrecordedPatch": {"the template still shows it, whatever the revisions are", moved, func(t *timeline.Timeline) {
			t.Record.RolledOutAt, t.Record.Shown, t.Input.Content = at(3), shows("0"), upTo(50)
		}, []string{"IsUnwatched", "HasUnrecordedPatch", "DeliveredUnrecorded"}},
		"DeliveredAndReverted": {"another writer has changed the template since; a newer revision shows it", moved, func(t *timeline.Timeline) {
			t.Input.Shows, t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = shows("2"), time.Time{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(5, at(10), "1"), revision(6, at(15), "2")}
		}, []string{"IsUnwatched", "DeliveredUnrecorded"}},
		"RecordedPatch": {"the controller made the revision of the patch on record a second after it", moved, func(t *timeline.Timeline) {
			t.Workload.RolledOutAt, t.Workload.Shows, t.Input.Content, t.Past.Asked = time.Time{}, input.Mark{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(6, at(5), "0"), revision(5, at(11), "1")}
			t.Past.Revisions[0].Earlier, t.Past.Revisions[0].Current = []int64{4}, true
		}, []string{"IsUnwatched"}},
		"OldRevision": {"a revision from before the record is no delivery after it", moved, func(t *timeline.Timeline) {
			t.Input.Shows, t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = shows("0"), time.Time{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(4, at(5), "0")}
		}, []string{"IsUnwatched"}},
		"AsOf": {"nor one from before the last write that the record takes into account", moved, func(t *timeline.Timeline) {
			t.Input.Shows, t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = shows("0"), time.Time{}, upTo(50), true
			t.Record.AsOf = at(20)
			t.Past.Revisions = []timeline.Revision{revision(0, at(15), "0")}
		}, []string{"IsUnwatched"}},
		"Accounted": {"nor one whose last use is on record: a version that became unknown since is due", moved, func(t *timeline.Timeline) {
			t.Input.Shows, t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = shows("0"), time.Time{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(5, at(15), "0")}
		}, []string{"IsUnwatched"}},
		"UsedAgain": {"an old revision that became current again got a new number", moved, func(t *timeline.Timeline) {
			t.Input.Shows, t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = shows("0"), time.Time{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(6, at(5), "0")}
		}, []string{"IsUnwatched", "DeliveredUnrecorded"}},
		"UsedAgainByAPerson": {"while the template still shows it, a person may have gone back to it", moved, func(t *timeline.Timeline) {
			t.Input.Shows, t.Workload.Shows, t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = shows("0"), shows("0"), time.Time{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(6, at(5), "0")}
		}, []string{"IsUnwatched"}},
		"UsedAgainDuringAPause": {"it got its number, and no pod was made from it", moved, func(t *timeline.Timeline) {
			t.Input.Shows, t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = shows("0"), time.Time{}, upTo(50), true
			t.Workload.Unrolled = true
			t.Past.Revisions = []timeline.Revision{revision(6, at(5), "0")}
		}, []string{"IsUnwatched"}},
		"EditedByAnother": {"a person went back to a revision and changed something else: the pods have what existed then", moved, func(t *timeline.Timeline) {
			t.Input.Shows, t.Workload.Shows, t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = shows("0"), shows("0"), time.Time{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(6, at(5), "0"), revision(5, at(10), "1"), revision(7, at(15), "0")}
		}, []string{"IsUnwatched"}},
		"KeptByAnother": {"revisions tell nothing of the version that the record shows", moved, func(t *timeline.Timeline) {
			t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = time.Time{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(6, at(15), "1")}
		}, []string{"IsUnwatched"}},
		"GivenAgain": {"but a patch of ours that gave it again added a word", moved, func(t *timeline.Timeline) {
			t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = time.Time{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(5, at(10), "1"), revision(6, at(15), "1 again")}
		}, []string{"IsUnwatched", "DeliveredUnrecorded"}},
		"GivenAgainKept": {"and another writer keeps the word", moved, func(t *timeline.Timeline) {
			t.Workload.RolledOutAt, t.Input.Content, t.Past.Asked = time.Time{}, upTo(50), true
			t.Past.Revisions = []timeline.Revision{revision(5, at(10), "1 again"), revision(6, at(15), "1 again")}
		}, []string{"IsUnwatched"}},
		"MadeUnseen": {"and its input was written after its revision", madeUnseen, func(*timeline.Timeline) {}, []string{"MadeUnseen", "ChangedAfterUnseenStart", "IsUnwatched"}},
		"MadeUnseenUnchanged": {"its input is as old as its revision", madeUnseen, func(t *timeline.Timeline) {
			t.Input.WrittenAt = at(11)
		}, []string{"MadeUnseen", "IsUnwatched"}},
		"MadeUnseenInputLater": {"its input came after its revision: the pods waited for it", madeUnseen, func(t *timeline.Timeline) {
			t.Input.Created = at(15)
		}, []string{"MadeUnseen", "IsUnwatched"}},
		"MadeUnseenTogether": {"one apply made both, and its input was written after that", madeUnseen, func(t *timeline.Timeline) {
			t.Input.Created = at(11)
		}, []string{"MadeUnseen", "ChangedAfterUnseenStart", "IsUnwatched"}},
		"MadeUnseenAskedLater": {"it was asked for after the change", madeUnseen, func(t *timeline.Timeline) {
			t.Workload.AskedAt = at(30)
		}, []string{"MadeUnseen", "IsUnwatched"}},
		"MadeUnseenNoRevision": {"without a revision nothing is known", madeUnseen, func(t *timeline.Timeline) {
			t.Past.Revisions = nil
		}, []string{"MadeUnseen", "IsUnwatched"}},
		"OnRecord": {"a workload on record was seen before", madeUnseen, func(t *timeline.Timeline) {
			t.Record.Known = true
		}, []string{"IsUnwatched"}},
		"MadeInSight": {"the watch saw it being made", madeUnseen, func(t *timeline.Timeline) {
			t.Workload.Template = exactly(40)
		}, []string{"IsUnwatched"}},
		"OlderThanFollowing": {"a flag or a permission brought a whole kind", madeUnseen, func(t *timeline.Timeline) {
			t.Following = at(30)
		}, []string{"IsUnwatched"}},
		"NeverFollowed": {"its kind was not followed before this process", madeUnseen, func(t *timeline.Timeline) {
			t.Begun = false
		}, []string{"IsUnwatched"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := tc.base()
			tc.change(&line)
			if diff := cmp.Diff(tc.want, answers(line)); diff != "" {
				t.Errorf("%s: answered with yes (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOrderUnknown: what the pods have loaded is not known when the input and the template
// were written in an order that is not.
func TestOrderUnknown(t *testing.T) {
	t.Parallel()
	between := timeline.Bounds{Min: 35, Max: 50}
	takenOver := func(t *timeline.Timeline) { t.Workload.Unrevised, t.Record.TakenOver = true, true }
	cases := map[string]struct {
		reason            string
		template, content timeline.Bounds
		change            func(*timeline.Timeline)
		want              bool
	}{
		"Watched":     {"both were seen", exactly(40), exactly(50), nil, false},
		"Later":       {"the change came since the watch was in step, the rollout before", exactly(30), between, nil, false},
		"Around":      {"both came since then", exactly(40), between, nil, true},
		"MadeInAGap":  {"so it is with a workload that a list brought", upTo(60), between, nil, true},
		"Start":       {"the template is on record: there was no rollout", upTo(60), upTo(50), nil, false},
		"Unaccounted": {"the template is not on record", upTo(60), upTo(50), func(t *timeline.Timeline) { t.Record.Unaccounted = true }, true},
		"Paused":      {"a template that leads to no revision restarts no pod", exactly(40), between, func(t *timeline.Timeline) { t.Workload.Unrevised = true }, false},
		"TakenOver":   {"its pods were made for another workload, and may have loaded what was between", exactly(60), between, takenOver, true},
		"Restarted":   {"so they may, but the record knows of no rollout", upTo(60), upTo(50), takenOver, false},
		"SinceMade":   {"the change came after the workload, and so after its pods", exactly(30), between, takenOver, false},
		"SeenBefore":  {"a watch saw the change, and so did a look at the other workload", exactly(60), exactly(50), takenOver, false},
		"ReadLive":    {"a command knows no order at all", timeline.Bounds{}, timeline.Bounds{}, func(t *timeline.Timeline) { t.Record.Unaccounted = true }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := moved()
			line.Workload.Template, line.Input.Content = tc.template, tc.content
			if tc.change != nil {
				tc.change(&line)
			}
			if got := line.OrderUnknown(); got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
