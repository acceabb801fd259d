package rollouts

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

func TestRemember(t *testing.T) {
	t.Parallel()
	old := record.Delivered{Version: v1, Shown: input.Tracked(v1.Short())}
	behind := record.Delivered{Version: v1, Shown: input.Tracked(v1.Short()), Due: v2.Short()}
	given := func(g record.Delivered) map[input.ID]record.Delivered { return map[input.ID]record.Delivered{app: g} }
	awaiting := func(version string, since time.Time) record.Delivered {
		return record.Delivered{Version: v1, Shown: input.Tracked(v1.Short()), Due: version, Waits: since.UTC()}
	}
	waits := func(why input.Reason) outcome {
		return outcome{
			decision: Decision{Verb: Wait, Reason: why, Due: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)},
			recorded: record.NewDecision(why, "", now, time.Time{}),
		}
	}
	movedAt := now.Add(time.Second)
	cases := map[string]struct {
		reason   string
		before   map[input.ID]record.Delivered
		outcome  outcome
		want     map[input.ID]record.Delivered
		wantMove time.Time
	}{
		"Move": {
			reason:  "a moved input was given the version that exists, and the template shows it",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: RollOut, Delivered: true, Due: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)}, rolledOut: kube.RolledOut{At: movedAt}},
			want:    given(record.Delivered{Version: v2, Shown: input.Tracked(v2.Short())}), wantMove: movedAt,
		},
		"MoveShowsTheRest": {
			reason:  "a move shows every followed input, also one that was in step",
			before:  given(record.Delivered{Version: v1}),
			outcome: outcome{decision: Decision{Verb: RollOut, Delivered: true, Due: []input.Finding{due(db, 0)}}, findings: []input.Finding{inStep(app), due(db, 0)}, rolledOut: kube.RolledOut{At: movedAt}},
			want:    map[input.ID]record.Delivered{app: old, db: {Version: v2, Shown: input.Tracked(v2.Short())}}, wantMove: movedAt,
		},
		"Wait": {
			reason:  "a pending change keeps what was given",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Wait, Due: []input.Finding{due(app, 0)}, PendingSince: now}, findings: []input.Finding{due(app, 0)}},
			want:    given(behind),
		},
		"Turn": {
			reason:  "it waits for other workloads since now",
			before:  given(behind),
			outcome: waits(input.AwaitsTurn),
			want:    given(awaiting(v2.Short(), now)),
		},
		"TurnBetweenWindows": {
			reason:  "its window closed, and the wait for others goes on",
			before:  given(awaiting(v2.Short(), ago(time.Hour))),
			outcome: waits(input.AwaitsWindow),
			want:    given(awaiting(v2.Short(), ago(time.Hour))),
		},
		"TurnAgain": {
			reason:  "its window is open again",
			before:  given(awaiting(v2.Short(), ago(time.Hour))),
			outcome: waits(input.AwaitsFirst),
			want:    given(awaiting(v2.Short(), ago(time.Hour))),
		},
		"TurnOfNext": {
			reason:  "it waited with the version before",
			before:  given(awaiting("another", ago(time.Hour))),
			outcome: waits(input.AwaitsTurn),
			want:    given(awaiting(v2.Short(), now)),
		},
		"TurnIsOver": {
			reason:  "what was given waits no longer",
			before:  given(awaiting(v2.Short(), ago(time.Hour))),
			outcome: outcome{decision: Decision{Verb: RollOut, Delivered: true, Due: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)}, rolledOut: kube.RolledOut{At: movedAt}},
			want:    given(record.Delivered{Version: v2, Shown: input.Tracked(v2.Short())}), wantMove: movedAt,
		},
		"Hold": {
			reason:  "so does a hold, so that its release delivers",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Hold, Due: []input.Finding{due(app, 0)}, PendingSince: now}, findings: []input.Finding{due(app, 0)}},
			want:    given(behind),
		},
		"WaitAtFirstSight": {
			reason:  "what was given is not known, and the change must not become a baseline for the next process",
			outcome: outcome{decision: Decision{Verb: Wait, Due: []input.Finding{due(app, 0)}, PendingSince: now}, findings: []input.Finding{due(app, 0)}},
			want:    given(record.Delivered{Version: v2.Unknown(), Due: v2.Short()}),
		},
		"DueAlthoughEqual": {
			reason:  "the pods have loaded something else, and the content went back: it stays due",
			before:  given(record.Delivered{Version: v2}),
			outcome: outcome{decision: Decision{Verb: Wait, Due: []input.Finding{due(app, 0)}, PendingSince: now}, findings: []input.Finding{due(app, 0)}},
			want:    given(record.Delivered{Version: v2.Unknown(), Due: v2.Short()}),
		},
		"NotKnownWhatPodsHave": {
			reason:  "they waited for it and may have loaded what came first: should that be back, it is due",
			before:  given(record.Delivered{Version: gone}),
			outcome: outcome{decision: Decision{Verb: Hold, PendingSince: now}, findings: []input.Finding{with(due(app, 0), func(f *input.Finding) { f.Delivered = v2.Unknown() })}},
			want:    given(record.Delivered{Version: v2.Unknown(), Due: v2.Short()}),
		},
		"NotKnownAndReverted": {
			reason:  "what was reverted stays on record: should it be back, it is not given again",
			before:  given(record.Delivered{Version: v1, RevertedTo: "web-1"}),
			outcome: outcome{decision: Decision{Verb: Hold, PendingSince: now}, template: Template{Reverted: map[input.ID]string{app: "web-1"}}, findings: []input.Finding{with(due(app, 0), func(f *input.Finding) { f.Delivered = v2.Unknown() })}},
			want:    given(record.Delivered{Version: v1, RevertedTo: "web-1", Due: v2.Short()}),
		},
		"TemplateLacksIt": {
			reason:  "what comes with the template is due by what that has; what was given is still known",
			before:  map[input.ID]record.Delivered{input.Image("web"): {Version: v2}},
			outcome: outcome{decision: Decision{Verb: Hold, PendingSince: now}, findings: []input.Finding{image(due(app, 0))}, kinds: []input.Kind{input.KindImage}},
			want:    map[input.ID]record.Delivered{input.Image("web"): {Version: v2, Due: v2.Short()}},
		},
		"RevertedAndMissing": {
			reason:  "a later revision is current, and its pods have started without the source, or wait for it",
			before:  map[input.ID]record.Delivered{app: {Version: v1, RevertedTo: "web-1"}, db: old},
			outcome: outcome{decision: Decision{Verb: RollOut, Delivered: true, Due: []input.Finding{due(db, 0)}}, findings: []input.Finding{missing(app), due(db, 0)}, template: Template{Reverted: map[input.ID]string{app: "web-1"}}, rolledOut: kube.RolledOut{At: movedAt}},
			want:    map[input.ID]record.Delivered{app: {Version: gone}, db: {Version: v2, Shown: input.Tracked(v2.Short())}}, wantMove: movedAt,
		},
		"Unrolled": {
			reason:  "the template of a paused workload uses it no more, and the pods that run do",
			before:  map[input.ID]record.Delivered{app: old, db: old},
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{inStep(app)}, unrolled: true},
			want:    map[input.ID]record.Delivered{app: old, db: old},
		},
		"Refused": {
			reason:  "a patch that the API server refused shows nothing",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: RollOut, Due: []input.Finding{due(app, 0)}, PendingSince: now}, findings: []input.Finding{due(app, 0)}},
			want:    given(behind),
		},
		"Observe": {
			reason:  "what was only told counts as given; the template shows nothing new",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Observe, Delivered: true, Due: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)}},
			want:    given(record.Delivered{Version: v2, Shown: input.Tracked(v1.Short())}),
		},
		"NextJob": {
			reason:  "a CronJob was given what its next Job reads",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Remember, Delivered: true, Reason: input.NextJob, Due: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)}},
			want:    given(record.Delivered{Version: v2, Shown: input.Tracked(v1.Short())}),
		},
		"Baseline": {
			reason:  "a first sight",
			outcome: outcome{decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.Baseline)}},
			want:    given(record.Delivered{Version: v1}),
		},
		"BaselineBesideAWait": {
			reason:  "a new input is remembered although another one waits",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Wait, Due: []input.Finding{due(app, 0)}, PendingSince: now}, findings: []input.Finding{due(app, 0), recorded(db, input.Baseline)}},
			want:    map[input.ID]record.Delivered{app: behind, db: {Version: v1}},
		},
		"SomebodysRollout": {
			reason:  "a template of somebody else shows nothing of ours to compare with",
			before:  given(record.Delivered{Version: v2, Shown: input.Tracked(v2.Short())}),
			outcome: outcome{decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.DeliveredByRollout)}},
			want:    given(record.Delivered{Version: v1}),
		},
		"SomebodysRolloutThatKeepsOurs": {
			reason: "a template that still shows our patch is still compared",
			before: given(record.Delivered{Version: v2, Shown: input.Tracked(v2.Short())}),
			outcome: outcome{
				decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.DeliveredByRollout)},
				before: before{template: input.Shown{app: input.Tracked(v2.Short())}},
			},
			want: given(record.Delivered{Version: v1, Shown: input.Tracked(v2.Short())}),
		},
		"DeliveredBefore": {
			reason:  "our own patch is remembered as one, so that its undo is seen",
			before:  given(record.Delivered{Version: v2}),
			outcome: outcome{decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.DeliveredBefore)}},
			want:    given(old),
		},
		"Dropped": {
			reason:  "what the workload no longer follows is forgotten",
			before:  map[input.ID]record.Delivered{app: old, db: old},
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{inStep(app)}},
			want:    given(old),
		},
		"OtherFamily": {
			reason:  "what no family was asked about is kept: its family may be switched off",
			before:  map[input.ID]record.Delivered{app: old, input.Image("web"): old},
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{inStep(app)}},
			want:    map[input.ID]record.Delivered{app: old, input.Image("web"): old},
		},
		"Withheld": {
			reason:  "an image that was not moved keeps what was given, and what the template shows",
			before:  map[input.ID]record.Delivered{app: old, input.Image("web"): old},
			outcome: outcome{decision: Decision{Verb: RollOut, Delivered: true, Due: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0), image(due(db, 0))}, rolledOut: kube.RolledOut{At: movedAt}},
			want:    map[input.ID]record.Delivered{app: {Version: v2, Shown: input.Tracked(v2.Short())}, input.Image("web"): behind}, wantMove: movedAt,
		},
		"Unreadable": {
			reason:  "what cannot be read now stays as it was given",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{{ID: app, Reason: input.Unreadable, Versions: input.Versions{Delivered: v1}}}},
			want:    given(old),
		},
		"RolledByHand": {
			reason:  "a template that shows what exists was not reverted, whoever wrote it",
			before:  map[input.ID]record.Delivered{app: {Version: v1, Shown: input.Tracked("0000000000")}},
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{inStep(app)}, before: before{template: input.Shown{app: input.Tracked(v1.Short())}}},
			want:    map[input.ID]record.Delivered{app: {Version: v1, Shown: input.Tracked(v1.Short())}},
		},
		"UnreadableNeverSeen": {
			reason:  "and what was never read is not made up",
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{{ID: app, Reason: input.Unreadable}}},
			want:    map[input.ID]record.Delivered{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := record.Entry{ID: "id", UID: "uid", Inputs: tc.before, Pending: record.Pending{PendingSince: ago(time.Minute)}}
			kept := entry.Clone()
			tc.outcome.kinds = []input.Kind{input.KindConfigMap, input.KindSecret}
			got := remember(entry, tc.outcome)
			want := record.Entry{ID: "id", UID: "uid", Inputs: tc.want, Pending: record.Pending{PendingSince: tc.outcome.decision.PendingSince}, Coverage: record.Coverage{RolledOutAt: tc.wantMove}, Decision: tc.outcome.recorded}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			if !entry.Equal(kept) {
				t.Errorf("the entry that was read has changed: %+v", entry)
			}
		})
	}
}

// TestRememberHowFarItKnows: what was written to the workload by the time of the
// record is no news to the next process. Revision 7 was written at now, and the
// entry knows of our patch that led to revision 6, an hour ago.
func TestRememberHowFarItKnows(t *testing.T) {
	t.Parallel()
	unreadable := input.Finding{ID: db, Reason: input.Unreadable}
	known := record.Template{Generation: 1, Sum: "a", Number: 6}
	cases := map[string]struct {
		reason   string
		decision Decision
		findings []input.Finding
		movedAt  time.Time // of our patch in the template
		want     int64
	}{
		"Moved":         {"the revision that the patch leads to", Decision{Verb: RollOut, Delivered: true}, []input.Finding{due(app, 0)}, ago(time.Hour), 8},
		"Taken":         {"a baseline: revisions of before say nothing", Decision{Verb: Remember}, []input.Finding{recorded(app, input.Baseline)}, time.Time{}, 7},
		"Observed":      {"counts as given", Decision{Verb: Observe, Delivered: true}, []input.Finding{due(app, 0)}, time.Time{}, 7},
		"RolledByHand":  {"a patch that it did not know, and all is well", Decision{Verb: Leave}, []input.Finding{inStep(app)}, now, 7},
		"InStep":        {"nothing new", Decision{Verb: Leave}, []input.Finding{inStep(app)}, ago(time.Hour), 6},
		"StillDue":      {"a patch that is not on record may have delivered it", Decision{Verb: Wait}, []input.Finding{due(app, 0), recorded(db, input.Baseline)}, now, 6},
		"MissingByNow":  {"what it gave of a source that is missing is unknown from now on", Decision{Verb: Remember}, []input.Finding{recorded(app, input.DeliveredBefore), missing(db)}, now, 7},
		"NotReadByNow":  {"the same of what cannot be read yet", Decision{Verb: Remember}, []input.Finding{recorded(app, input.Baseline), unreadable}, now, 6},
		"RefusedByNow":  {"or what was refused", Decision{Verb: RollOut}, []input.Finding{due(app, 0)}, now, 6},
		"NothingOfOurs": {"nobody's write matters while nothing is taken", Decision{Verb: Leave}, []input.Finding{inStep(app)}, time.Time{}, 6},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := known
			if tc.want > 6 || tc.movedAt.Equal(now) {
				there.Number = 7
			}
			o := outcome{decision: tc.decision, findings: tc.findings, template: Template{Now: there}, before: before{writtenAt: now, rolledOutAt: tc.movedAt}}
			if tc.decision.Delivered {
				o.decision.Due = withStanding(tc.findings, input.Due)
			}
			if tc.decision.Verb == RollOut && tc.decision.Delivered {
				o.rolledOut = kube.RolledOut{At: now, Template: record.Template{Generation: 2, Sum: "b"}}
			}
			got := remember(record.Entry{Coverage: record.Coverage{RolledOutAt: ago(time.Hour), Accounted: 6, Template: known}}, o)
			if got.Accounted != tc.want || (now.After(got.RolledOutAt) && now.After(got.AsOf)) != (tc.want == 6) {
				t.Errorf("%s: it knows revision %d as of %s and %s, want %d", tc.reason, got.Accounted, got.RolledOutAt, got.AsOf, tc.want)
			}
			if want := later(ago(time.Hour), tc.movedAt); tc.want == 7 && o.rolledOut.At.IsZero() && !got.RolledOutAt.Equal(want) {
				t.Errorf("%s: it knows our patch of %s, want that of %s", tc.reason, got.RolledOutAt, want)
			}
		})
	}
}

// TestMissingAfterAnUnrecordedPatch: the process ended between a patch and the record, and a
// source that the patch gave is missing. What the pods have of it is not what is on record.
func TestMissingAfterAnUnrecordedPatch(t *testing.T) {
	t.Parallel()
	e := record.Entry{Coverage: record.Coverage{RolledOutAt: ago(time.Hour)}, Inputs: map[input.ID]record.Delivered{db: {Version: v1}}}
	for name, tc := range map[string]struct {
		shows   input.Mark
		movedAt time.Time
		want    fingerprint.Version
	}{
		"Another": {input.Tracked(v2.Short()), now, v1.Unknown()},
		"Same":    {input.Tracked(v1.Short()), now, v1},
		"NoPatch": {input.Tracked(v2.Short()), ago(time.Hour), v1},
	} {
		o := outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{missing(db)}, before: before{template: input.Shown{db: tc.shows}, rolledOutAt: tc.movedAt}}
		if got := remember(e, o).Inputs[db].Version; got != tc.want {
			t.Errorf("%s: on record is %s, want %s", name, got, tc.want)
		}
	}
}

// TestRememberBeginsWithWhatThereIs: an old patch of ours in the template is no
// unwritten delivery to an entry that begins after it, also when a source cannot be
// read yet.
func TestRememberBeginsWithWhatThereIs(t *testing.T) {
	t.Parallel()
	o := outcome{
		decision: Decision{Verb: Remember},
		findings: []input.Finding{recorded(app, input.Baseline), {ID: db, Reason: input.Unreadable}},
		template: Template{Now: record.Template{Number: 7}}, before: before{writtenAt: now, rolledOutAt: ago(time.Hour)},
	}
	got := remember(record.Entry{}, o)
	if !got.RolledOutAt.Equal(ago(time.Hour)) || !got.AsOf.Equal(now) || got.Accounted != 7 {
		t.Errorf("it knows revision %d, our patch of %s and all as of %s", got.Accounted, got.RolledOutAt, got.AsOf)
	}
}

// missing is an input that does not exist any more.
var gone = fingerprint.Hasher{}.AbsentVersion(fingerprint.AllKeys())

func missing(id input.ID) input.Finding {
	return input.Finding{ID: id, Standing: input.Settled, Reason: input.Missing, Versions: input.Versions{Delivered: v1, Current: gone}, Live: true}
}

// TestRememberOthersRevision: a revision that another writer uses again was not made for
// what it shows, and one that came and went is of no interest once all is in step. The entry
// knows of them from now on.
func TestRememberOthersRevision(t *testing.T) {
	t.Parallel()
	at := func(sum string, number int64) record.Template {
		return record.Template{Generation: 1, Sum: sum, Number: number}
	}
	again := due(app, 0)
	again.Current, again.Live = v1, true
	cases := map[string]struct {
		reason   string
		from     int64 // the number on record; the workload has 7
		template record.Template
		finding  input.Finding
		want     int64
		asOf     time.Time
	}{
		"Ours":        {"the revision of our patch", 7, at("a", 7), inStep(app), 7, time.Time{}},
		"Another":     {"another writer's template", 6, at("b", 7), inStep(app), 7, now},
		"CameAndWent": {"the template of before, after another one", 5, at("a", 7), inStep(app), 7, now},
		"NotKnown":    {"the entry does not tell which revision it knows", 0, at("a", 0), inStep(app), 0, time.Time{}},
		"AnotherDue":  {"a revision that another writer uses was not made for what is due", 5, at("b", 7), due(app, 0), 7, time.Time{}},
		"WentDue":     {"one that came and went may still tell that it was delivered", 5, at("a", 7), due(app, 0), 5, time.Time{}},
		"WentAgain":   {"what was on record before it wasn't delivered by it", 5, at("a", 7), again, 7, now},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := outcome{
				decision: Decision{Verb: Leave}, findings: []input.Finding{tc.finding},
				template: Template{Now: tc.template}, before: before{writtenAt: now},
			}
			got := remember(record.Entry{Coverage: record.Coverage{RolledOutAt: ago(time.Hour), Accounted: tc.from, Template: at("a", tc.from)}, Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}, o)
			if got.Accounted != tc.want || !got.AsOf.Equal(tc.asOf) {
				t.Errorf("%s: it knows revision %d and all as of %s, want %d and %s", tc.reason, got.Accounted, got.AsOf, tc.want, tc.asOf)
			}
		})
	}
}

// TestTookOver: pods of a workload that was deleted and made again are those of before
// while new ones would be made from a revision of before.
func TestTookOver(t *testing.T) {
	t.Parallel()
	revisions := func(current int) []timeline.Revision {
		all := []timeline.Revision{{Created: ago(time.Hour)}, {Created: now}}
		if current >= 0 {
			all[current].Current = true
		}
		return all
	}
	made := ago(time.Minute)
	paused := kube.Progress{Status: health.Status{Paused: true}}
	cases := map[string]struct {
		reason   string
		workload kube.Workload
		current  int
		gone     time.Time
		want     bool
	}{
		"Same":   {"the revision is older than the workload", kube.Workload{Identity: kube.Identity{Created: made}}, 0, time.Time{}, true},
		"New":    {"its pods are as new as itself", kube.Workload{Identity: kube.Identity{Created: made}}, 1, time.Time{}, false},
		"Paused": {"it starts no pods, whatever its template", kube.Workload{Identity: kube.Identity{Created: made}, Status: paused}, -1, time.Time{}, true},
		"Moved":  {"our patch, which is not on record, made the new revision", kube.Workload{Identity: kube.Identity{Created: made}, TemplateObject: kube.TemplateObject{RolledOutAt: now}}, 1, time.Time{}, true},
		"Copied": {"our patch is older than the workload", kube.Workload{Identity: kube.Identity{Created: made}, TemplateObject: kube.TemplateObject{RolledOutAt: ago(time.Hour)}}, 1, time.Time{}, false},
		"Before": {"the revision is from before the one that is on record was gone", kube.Workload{Identity: kube.Identity{Created: made}}, 0, ago(time.Hour), true},
		"Third":  {"another one of its name came between, and left the revision", kube.Workload{Identity: kube.Identity{Created: made}}, 0, ago(2 * time.Hour), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tookOver(&tc.workload, revisions(tc.current), tc.gone); got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestTakenOverIsOnRecord: the entry of a workload that took over pods is its own from then
// on, also when there is nothing else to put on record. After its next rollout nothing tells
// that it took them over.
func TestTakenOverIsOnRecord(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.findings = []input.Finding{inStep(app)}
	s.workload.Created, s.workload.Status.Observed = ago(time.Minute), true
	s.entry = &record.Entry{ID: web("web").ID(), UID: "0815", Inputs: map[input.ID]record.Delivered{app: {Version: v1}}, Coverage: record.Coverage{RolledOutAt: ago(time.Hour), Template: s.workload.Template()}, Presence: record.Presence{Inherited: s.workload.StartsFrom()}}
	d := s.dependencies()
	d.Revisions = func(context.Context, *kube.Workload) (timeline.Past, error) {
		return timeline.Past{Asked: true, Revisions: []timeline.Revision{{Name: "web-a", Number: 1, Created: ago(time.Hour), Current: true}}}, nil
	}
	loop := New(DefaultOptions(), d)
	for range 2 {
		if _, err := loop.Reconcile(t.Context(), web("web")); err != nil {
			t.Fatal(err)
		}
	}
	if s.entry.UID != s.workload.UID || s.recorded != 1 {
		t.Errorf("on record is the workload %s after %d writes, want %s after one", s.entry.UID, s.recorded, s.workload.UID)
	}
}

// TestHoldKeepsASeriesOfEvictions: it is not begun again when the hold ends, which would
// evict pods that are new.
func TestHoldKeepsASeriesOfEvictions(t *testing.T) {
	t.Parallel()
	running := record.Entry{Eviction: record.Eviction{For: "configmap/app~2", Since: ago(time.Minute), Pods: 2}}
	for verb, want := range map[Verb]string{Hold: running.Eviction.For, Evict: running.Eviction.For, Leave: ""} {
		if got := remember(running, outcome{decision: Decision{Verb: verb}}); got.Eviction.For != want || got.Eviction.Since.IsZero() != (want == "") {
			t.Errorf("%s: the series is %q since %s, want %q", verb, got.Eviction.For, got.Eviction.Since, want)
		}
	}
}

// TestHoldTextIsBounded: whoever may annotate may paste anything.
func TestHoldTextIsBounded(t *testing.T) {
	t.Parallel()
	if got := quoted(strings.Repeat("x", 100<<10)); len(got) > 200 {
		t.Errorf("%d bytes of a hold are told", len(got))
	}
}

// TestTookOverByTheServersClock: when the earlier workload was gone is the API server's time of that record. Lockstep's own
// clock may be behind, so its revisions would look younger.
func TestTookOverByTheServersClock(t *testing.T) {
	t.Parallel()
	old := record.Entry{ID: web("web").ID(), UID: "old", Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
	for stored, want := range map[time.Time]bool{ago(time.Minute): true, ago(5 * time.Minute): false} {
		old.GoneAt, old.WrittenAt = ago(10*time.Minute), stored
		g := &Gatherer{Entry: func(kube.Key) (record.Entry, bool) { return old, true }, Now: func() time.Time { return ago(9 * time.Minute) }}
		g.Revisions = func(context.Context, *kube.Workload) (timeline.Past, error) { return timeline.Past{}, nil }
		w := &kube.Workload{Identity: kube.Identity{Key: web("web"), UID: "4711", Created: now}, Status: kube.Progress{Status: health.Status{Observed: true}}}
		past := func(context.Context, timeline.Evidence) (timeline.Past, error) {
			return timeline.Past{Asked: true, Revisions: []timeline.Revision{{Created: ago(2 * time.Minute), Current: true}}}, nil
		}
		if e, _, err := g.entry(t.Context(), w, past); err != nil || e.TakenOver != want {
			t.Errorf("gone by the record of %s: taken over %t, error %v, want %t", stored, e.TakenOver, err, want)
		}
	}
}

// TestChangeDuringARollout: pods that start while a change is pending may load it, so it stays due even if it goes
// back. Pods that nobody replaces at the moment run the version on record.
func TestChangeDuringARollout(t *testing.T) {
	t.Parallel()
	rolling := health.Status{Observed: true, Counted: true, Counts: health.Counts{Wanted: 2, Existing: 3, Updated: 1, Available: 3}}
	change := func(f func(*health.Status)) health.Status { s := rolling; f(&s); return s }
	for name, tc := range map[string]struct {
		rollout health.Status
		between bool
		awaits  bool // the status shows the next start
	}{
		"Rolling":      {rolling, true, false},
		"Unobserved":   {change(func(s *health.Status) { s.Observed = false }), false, true}, // a pause or a label, perhaps
		"Done":         {change(func(s *health.Status) { s.Counts = health.Counts{Wanted: 2, Existing: 2, Updated: 2, Available: 2} }), false, true},
		"LastPod":      {change(func(s *health.Status) { s.Counts = health.Counts{Wanted: 2, Existing: 1, Updated: 1, Available: 1} }), true, false},
		"Paused":       {change(func(s *health.Status) { s.Paused = true }), false, true},
		"StartsPaused": {change(func(s *health.Status) { s.Paused, s.Counts.Available = true, 2 }), true, false}, // created before the pause
		"OnDelete":     {change(func(s *health.Status) { s.OnDelete = true }), false, true},
		"StartsByHand": {change(func(s *health.Status) { s.OnDelete, s.Counts.Available = true, 2 }), true, false}, // one was deleted
		"Uncounted":    {change(func(s *health.Status) { s.Counted = false }), false, false},
	} {
		f := due(app, time.Minute)
		f.Delivered, f.Current, f.Live = v1, v2, true
		e := record.Entry{Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
		o := outcome{decision: Decision{Verb: Wait}, findings: []input.Finding{f}, rollout: tc.rollout}
		if got := remember(e, o).Inputs[app]; got.Version != v1 || got.Between != tc.between {
			t.Errorf("%s: on record is %+v, want between %t", name, got, tc.between)
		}
		in := Observation{Entry: e, Assessment: input.Assessment{Findings: o.findings}, State: WorkloadState{Rollout: tc.rollout}}
		if got := in.awaitsStart(o.decision); got != tc.awaits {
			t.Errorf("%s: the next start has to be noticed: %t, want %t", name, got, tc.awaits)
		}
		if in.awaitsStart(Decision{Verb: RollOut, Delivered: true, Due: in.Findings}) {
			t.Errorf("%s: a change that is rolled out still awaits a start", name)
		}
		f.Standing, f.Reason, f.Skipped = input.Settled, input.Missing, true
		o.findings = []input.Finding{f}
		if got := remember(e, o).Inputs[app]; got.Version != v1 || got.Between != tc.between {
			t.Errorf("%s: without the source, on record is %+v, want between %t", name, got, tc.between)
		}
	}
}
