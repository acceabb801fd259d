package configs_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
)

var (
	v1     = fingerprint.Version{Basis: "1:*", Sum: "11111111111111111111111111111111"}
	v2     = fingerprint.Version{Basis: "1:*", Sum: "22222222222222222222222222222222"}
	other  = fingerprint.Version{Basis: "1:00ff00ff", Sum: "33333333333333333333333333333333"}
	absent = fingerprint.Version{Basis: "1:*", Sum: "absent"}
)

// exactly is a write that a watch delivered.
func exactly(rv uint64) timeline.Bounds { return timeline.Bounds{Min: rv, Max: rv} }

// upTo is a write that was found by a list.
func upTo(rv uint64) timeline.Bounds { return timeline.Bounds{Max: rv} }

func at(second int) time.Time { return time.Date(2026, 11, 15, 3, 0, second, 0, time.UTC) }

func revisionOf(created time.Time) []timeline.Revision {
	return []timeline.Revision{{Created: created}}
}

// rolledOut is the revision that pods are made from, last written as version 55.
func rolledOut(created time.Time) []timeline.Revision {
	return []timeline.Revision{{Name: "web-b", Created: created, Written: 55, Current: true}}
}

// started are pods that were made and accepted in one second, and started in another.
func started(accepted, started time.Time, version uint64) pods.Starts {
	return pods.Starts{Asked: true, Created: accepted, Accepted: accepted, Started: started, Version: version}
}

// seen is an observation in short: what the cases differ in.
type seen struct {
	Given, Current              fingerprint.Version
	Required, New, Mixed        bool
	Running, Sealed, Searched   bool
	Unobserved, Between         bool
	Content, Template, Followed timeline.Bounds
	// What our patch on record showed, what the template shows, and what it would show
	// with what exists.
	RecordedVersion, ShownVersion, CurrentShown string
	// Unrecorded is true when a patch of ours that is not on record wrote the template.
	Unrecorded bool
	// Unaccounted is true when another writer's template is not on record.
	Unaccounted bool
	// Unrolled is true while pods are made from another template.
	Unrolled bool
	// Delivering is what a series of evictions delivers.
	Delivering string
	// Unseen is true for a workload that was made while the controller was down.
	Unseen                      bool
	AskedAt, Created, WrittenAt time.Time
	// Revisions are nil when nobody asked for them, and so are Starts.
	Revisions []timeline.Revision
	Starts    pods.Starts
	// Mounted is true for a source in a volume, OlderPods while pods of an earlier template may run.
	Mounted, OlderPods bool
}

func (s seen) observation() configs.Observation {
	line := timeline.Timeline{
		ID:       input.ConfigMap("app"),
		Workload: timeline.Workload{Created: at(5), Template: s.Template, Asked: s.Followed, AskedAt: s.AskedAt, Shows: input.Tracked(s.ShownVersion)},
		Input:    timeline.Input{Created: s.Created, WrittenAt: s.WrittenAt, Content: s.Content, New: s.New, Shows: input.Tracked(s.CurrentShown)},
		Record:   timeline.Record{Known: !s.Given.IsZero(), Shown: input.Tracked(s.RecordedVersion)},
		Begun:    s.Unseen, Past: timeline.Past{Asked: s.Revisions != nil, Revisions: s.Revisions},
	}
	if s.Unrecorded {
		line.Workload.RolledOutAt = at(3)
	}
	line.Past.Starts, line.Input.Mounted, line.Workload.OlderPods = s.Starts, s.Mounted, s.OlderPods
	line.Record.Waits = s.Required && (s.Given.IsAbsent() || s.Given.IsZero() && s.New)
	line.Record.Searched, line.Record.Unaccounted, line.Record.Delivering = s.Searched, s.Unaccounted, input.Tracked(s.Delivering)
	return configs.Observation{Unrolled: s.Unrolled, Delivered: s.Given, Current: s.Current, Required: s.Required, Mixed: s.Mixed, Running: s.Running, Unobserved: s.Unobserved, Between: s.Between, Sealed: s.Sealed, Timeline: line}
}

// decideCase is one situation and its verdict.
type decideCase struct {
	reason string
	in     seen
	want   configs.Verdict
}

func decideCases() map[string]decideCase {
	due := configs.Verdict{Standing: input.Due, Reason: input.Changed}
	recorded := func(r input.Reason) configs.Verdict { return configs.Verdict{Standing: input.Record, Reason: r} }
	settled := func(r input.Reason) configs.Verdict { return configs.Verdict{Standing: input.Settled, Reason: r} }
	return map[string]decideCase{
		"MissingAtFirstSight": {
			"a workload that started without the source is recorded as such",
			seen{Current: absent},
			recorded(input.Missing),
		},
		"MissingAfterwards": {
			"a deleted source restarts nobody, and what was given is kept for its return",
			seen{Given: v1, Current: absent},
			settled(input.Missing),
		},
		"RolledOutWithout": {
			"another rollout has started pods without it",
			seen{Given: v1, Current: absent, Unaccounted: true},
			recorded(input.DeliveredByRollout),
		},
		"RolledOutWaiting": {
			"the pods of another rollout wait for it",
			seen{Given: v1, Current: absent, Unaccounted: true, Required: true},
			settled(input.Missing),
		},
		"RolledOutPastIt": {
			"they wait in one place, and have passed another one",
			seen{Given: v1, Current: absent, Unaccounted: true, Required: true, Mixed: true},
			recorded(input.DeliveredByRollout),
		},
		"OtherKeysDuringPause": {
			"the pods have loaded what the template used before the pause",
			seen{Given: v1, Current: other, Unrolled: true},
			settled(input.NewBasis),
		},
		"BackDuringARollout": {
			"pods that started while the other one was due may run it",
			seen{Given: v1, Current: v1, Between: true, Content: exactly(60), Template: exactly(40)},
			due,
		},
		"BackDuringEvictions": {
			"some pods have loaded what was between",
			seen{Given: v1, Current: v1, CurrentShown: "1", Delivering: "2"},
			due,
		},
		"StillMissing": {
			"nothing came",
			seen{Given: absent, Current: absent},
			settled(input.Missing),
		},
		"FirstSight": {
			"installing restarts nobody",
			seen{Current: v1, Content: upTo(50), Template: upTo(40), Followed: upTo(40)},
			recorded(input.Baseline),
		},
		"FirstSightInDoubt": {
			"a source that may have changed before the template is no evidence",
			seen{Current: v1, Content: timeline.Bounds{Min: 30, Max: 60}, Template: exactly(40), Followed: exactly(20)},
			recorded(input.Baseline),
		},
		"FirstSightOfAChange": {
			"the source certainly changed after the workload took up its template and asked",
			seen{Current: v1, Content: exactly(50), Template: exactly(40), Followed: exactly(45)},
			due,
		},
		"ArrivedBeforeFirstSight": {
			"a required source that was made after its workload: the pods waited for it",
			seen{Current: v1, Required: true, New: true, Content: exactly(50), Template: exactly(40), Followed: exactly(40), Created: at(2), Revisions: rolledOut(at(0)), Starts: started(at(0), time.Time{}, 41)},
			recorded(input.Arrived),
		},
		"OptionalArrivedBeforeFirstSight": {
			"the pods may have started without it",
			seen{Current: v1, New: true, Content: exactly(50), Template: exactly(40), Followed: exactly(40)},
			due,
		},
		"AskedAfterTheChange": {
			"who asks to be followed now is not restarted for what was before",
			seen{Current: v1, Content: exactly(50), Template: exactly(40), Followed: exactly(60)},
			recorded(input.Baseline),
		},
		"MadeMeanwhileAndChanged": {
			"made while nobody watched, and its source was written after its revision",
			seen{Current: v1, Content: upTo(50), Template: upTo(40), Followed: upTo(40), Unseen: true, AskedAt: at(2), Created: at(1), WrittenAt: at(20), Revisions: revisionOf(at(10))},
			due,
		},
		"MadeMeanwhileUnchanged": {
			"its source is older than its revision: the pods read what exists",
			seen{Current: v1, Content: upTo(50), Template: upTo(40), Unseen: true, AskedAt: at(2), Created: at(1), WrittenAt: at(10), Revisions: revisionOf(at(10))},
			recorded(input.Baseline),
		},
		"MadeMeanwhileSourceLater": {
			"a source that came after the revision: the pods waited for it",
			seen{Current: v1, Content: upTo(50), Template: upTo(40), Unseen: true, AskedAt: at(2), Created: at(15), WrittenAt: at(20), Revisions: revisionOf(at(10))},
			recorded(input.Baseline),
		},
		"MadeMeanwhileNoRevision": {
			"without a revision nothing is known",
			seen{Current: v1, Content: upTo(50), Template: upTo(40), Unseen: true, AskedAt: at(2), Created: at(1), WrittenAt: at(20), Revisions: []timeline.Revision{}},
			recorded(input.Baseline),
		},
		"OlderThanTheRecord": {
			"a workload that the record could have known is a new opt-in, not a missed one",
			seen{Current: v1, Content: upTo(50), Template: upTo(40), AskedAt: at(2), Created: at(1), WrittenAt: at(20), Revisions: revisionOf(at(10))},
			recorded(input.Baseline),
		},
		"OtherKeys": {
			"the rollout that brought another list of keys has loaded them",
			seen{Given: other, Current: v1, Content: exactly(50), Template: exactly(51)},
			recorded(input.NewBasis),
		},
		"OtherKeysChangedSince": {
			"the rollout that brought another list of keys loaded the content before",
			seen{Given: other, Current: v1, Content: exactly(50), Template: exactly(40)},
			due,
		},
		"OtherKeysWhileDown": {
			"its revision came after the content",
			seen{Given: other, Current: v1, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(21)), Starts: pods.Starts{Asked: true}},
			recorded(input.NewBasis),
		},
		"OtherKeysAndChangedWhileDown": {
			"its pods started before the content was written",
			seen{Given: other, Current: v1, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(30), Revisions: rolledOut(at(21)), Starts: started(at(22), at(23), 56)},
			due,
		},
		"AnotherSourceWhileDown": {
			"the rollout that brought the source came after its content",
			seen{Current: v1, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(21)), Starts: pods.Starts{Asked: true}},
			recorded(input.Baseline),
		},
		"AnotherSourceChangedWhileDown": {
			"the workload was followed, and a rollout brought a source that changed afterwards",
			seen{Current: v1, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(30), Revisions: rolledOut(at(21)), Starts: started(at(22), at(23), 56)},
			due,
		},
		"RolledOutWhileDown": {
			"a deployment tool wrote the content and then the template, while the controller was upgraded",
			seen{Given: v1, Current: v2, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(21)), Starts: pods.Starts{Asked: true}},
			recorded(input.DeliveredByRollout),
		},
		"RolledOutInThatSecond": {
			"its pods started later",
			seen{Given: v1, Current: v2, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(20)), Starts: started(at(20), at(22), 58)},
			recorded(input.DeliveredByRollout),
		},
		"StartedInThatSecond": {
			"not even the start of its pods tells which came first",
			seen{Given: v1, Current: v2, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(20)), Starts: started(at(20), at(20), 58)},
			due,
		},
		"MountedInThatSecond": {
			"a node mounts volumes long before the containers start",
			seen{Given: v1, Current: v2, Content: upTo(50), Template: upTo(60), Unaccounted: true, Mounted: true, WrittenAt: at(20), Revisions: rolledOut(at(20)), Starts: started(at(20), at(50), 58)},
			due,
		},
		"KeyRemovedWhileDown": {
			"a write that removes a key leaves no time, but a resource version",
			seen{Given: v1, Current: v2, Content: upTo(70), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(30)), Starts: started(at(31), at(32), 58)},
			due,
		},
		"WithoutPods": {
			"pods that start later load what exists",
			seen{Given: v1, Current: v2, Content: upTo(70), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(10)), Starts: pods.Starts{Asked: true}},
			recorded(input.DeliveredByRollout),
		},
		"PodsNotListed": {
			"the permission is missing",
			seen{Given: v1, Current: v2, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(20)), Starts: pods.Starts{Asked: true, Unknown: true}},
			due,
		},
		"BackInThatSecond": {
			"the content was changed and changed back around a rollout, in one second",
			seen{Given: v1, Current: v1, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(20)), Starts: started(at(20), at(20), 58)},
			due,
		},
		"UnchangedSinceRollout": {
			"another writer's rollout of the image doesn't make a source due",
			seen{Given: v1, Current: v1, Content: upTo(50), Template: upTo(60), Unaccounted: true, WrittenAt: at(20), Revisions: rolledOut(at(30)), Starts: pods.Starts{Asked: true}},
			settled(input.InStep),
		},
		"AbsentOtherKeys": {
			"also when the source did not exist",
			seen{Given: fingerprint.Version{Basis: "0:*", Sum: "absent"}, Current: v1, Content: exactly(50)},
			recorded(input.NewBasis),
		},
		"InStep": {
			"given what exists, whatever the template shows",
			seen{Given: v1, Current: v1, Content: exactly(50), Template: upTo(40)},
			settled(input.InStep),
		},
		"InStepByOurPatch": {
			"the template shows what our patch put there",
			seen{Given: v1, Current: v1, RecordedVersion: "1", ShownVersion: "1", CurrentShown: "1"},
			settled(input.InStep),
		},
		"TemplateRewritten": {
			"a deployment tool that wipes our annotation takes nothing back",
			seen{Given: v1, Current: v1, RecordedVersion: "1", CurrentShown: "1"},
			settled(input.InStep),
		},
		"ShowsCurrentAnyway": {
			"an unused key changed after our patch, and somebody rolled out the newest",
			seen{Given: v1, Current: v1, RecordedVersion: "1", ShownVersion: "2", CurrentShown: "2"},
			settled(input.InStep),
		},
		"NeverPatched": {
			"what an old template shows means nothing when no patch of ours is on record",
			seen{Given: v1, Current: v1, ShownVersion: "0", CurrentShown: "1"},
			settled(input.InStep),
		},
		"Undone": {
			"our patch showed one version, and the template now shows an earlier one",
			seen{Given: v1, Current: v1, RecordedVersion: "1", ShownVersion: "0", CurrentShown: "1"},
			settled(input.Undone),
		},
		"WentBackUnwritten": {
			"killed between the patch and the record, and then the content went back: the pods run what was between",
			seen{Given: v1, Current: v1, Unrecorded: true, RecordedVersion: "1", ShownVersion: "2", CurrentShown: "1"},
			due,
		},
		"WentBackUnwrittenFirst": {
			"also when no patch is on record at all",
			seen{Given: v1, Current: v1, Unrecorded: true, ShownVersion: "2", CurrentShown: "1"},
			due,
		},
		"WentBackBeforeOurPatch": {
			"our patch came after the content had gone back: its pods read that",
			seen{Given: v1, Current: v1, Content: exactly(50), Template: exactly(51), Unrecorded: true, ShownVersion: "2", CurrentShown: "1"},
			recorded(input.DeliveredByRollout),
		},
		"RolledByHandUnwritten": {
			"a patch that is not on record shows what exists",
			seen{Given: v1, Current: v1, Unrecorded: true, RecordedVersion: "0", ShownVersion: "1", CurrentShown: "1"},
			settled(input.InStep),
		},
		"OtherSourceUnwritten": {
			"a patch that is not on record shows nothing of this source",
			seen{Given: v1, Current: v1, Unrecorded: true, CurrentShown: "1"},
			settled(input.InStep),
		},
		"DueBefore": {
			"it was due at first sight, and whoever saw that is gone",
			seen{Given: v1.Unknown(), Current: v1, Required: true, Content: upTo(50), Template: upTo(60)},
			due,
		},
		"Changed": {
			"given another version than exists",
			seen{Given: v1, Current: v2, Content: exactly(50), Template: exactly(40)},
			due,
		},
		"ChangedAfterUndo": {
			"a new version after an undo is news",
			seen{Given: v1, Current: v2, Content: exactly(50), Template: exactly(45), RecordedVersion: "1", ShownVersion: "0", CurrentShown: "2"},
			due,
		},
		"ChangedInDoubt": {
			"when the order is unknown the workload is due: nothing is missed",
			seen{Given: v1, Current: v2, Content: upTo(50), Template: upTo(60)},
			due,
		},
		"LoadedWhatWasBetween": {
			"another rollout may have loaded a content that went back since",
			seen{Given: v1, Current: v1, Content: exactly(50), Template: exactly(45), Unaccounted: true},
			due,
		},
		"RequiredArrived": {
			"the pods could not have started before",
			seen{Given: absent, Current: v1, Required: true, New: true, Content: exactly(50), Template: exactly(40), Created: at(2), Revisions: rolledOut(at(0)), Starts: started(at(0), time.Time{}, 41)},
			recorded(input.Arrived),
		},
		"RequiredArrivedAndStarted": {
			"they started in the second in which it was made",
			seen{Given: absent, Current: v1, Required: true, New: true, Content: exactly(50), Template: exactly(40), Created: at(2), Revisions: rolledOut(at(0)), Starts: started(at(0), at(2), 51)},
			recorded(input.Arrived),
		},
		"RequiredArrivedMixed": {
			"they could not have started before, and all their places are of the environment",
			seen{Given: absent, Current: v1, Required: true, Mixed: true, New: true, Content: exactly(50), Template: exactly(40), Created: at(2), Revisions: rolledOut(at(0)), Starts: started(at(0), time.Time{}, 41)},
			recorded(input.Arrived),
		},
		"RequiredArrivedMounted": {
			"a volume that doesn't require it may have been mounted before",
			seen{Given: absent, Current: v1, Required: true, Mixed: true, Mounted: true, New: true, Content: exactly(50), Template: exactly(40), Created: at(2), Revisions: rolledOut(at(0)), Starts: started(at(0), time.Time{}, 41)},
			due,
		},
		"RequiredMadeAgain": {
			"they started with one of that name that was deleted since",
			seen{Given: absent, Current: v1, Required: true, New: true, Content: exactly(50), Template: exactly(40), Created: at(2), Revisions: rolledOut(at(0)), Starts: started(at(0), at(1), 45)},
			due,
		},
		"RequiredArrivedUnlisted": {
			"nobody knows when they started",
			seen{Given: absent, Current: v1, Required: true, New: true, Content: exactly(50), Template: exactly(40), Created: at(2)},
			due,
		},
		"RequiredArrivedUnseen": {
			"it was made while the controller was down, and its pods started later",
			seen{Given: absent, Current: v1, Required: true, Content: upTo(50), Template: exactly(40), Created: at(1), WrittenAt: at(1), Revisions: rolledOut(at(0)), Starts: started(at(0), at(3), 58)},
			recorded(input.Arrived),
		},
		"RequiredArrivedAndChanged": {
			"the pods may have loaded what it was made with",
			seen{Given: absent, Current: v1, Required: true, Content: exactly(50), Template: exactly(40)},
			due,
		},
		"RequiredArrivedAndChangedUnseen": {
			"so they may while the controller was down",
			seen{Given: absent, Current: v1, Required: true, Content: upTo(50), Template: exactly(40), Created: at(1), WrittenAt: at(2), Revisions: rolledOut(at(0)), Starts: started(at(0), at(1), 58)},
			due,
		},
		"RequiredArrivedUnknown": {
			"it has the time of its creation, and a key may have been removed since",
			seen{Given: absent, Current: v1, Required: true, Content: upTo(50), Template: exactly(40), Created: at(1), WrittenAt: at(1)},
			due,
		},
		"RequiredArrivedUnobserved": {
			"pods of the new template don't exist yet, and those before it may have waited",
			seen{Given: absent, Current: v1, Required: true, Unobserved: true, Content: upTo(50), Template: exactly(40)},
			settled(input.GenerationNotObserved),
		},
		"RequiredArrivedNewUnobserved": {
			"nor does the watch show which pods there are",
			seen{Given: absent, Current: v1, Required: true, New: true, Unobserved: true, Content: exactly(50), Template: exactly(40)},
			settled(input.GenerationNotObserved),
		},
		"OptionalArrived": {
			"the pods run without it and must be told",
			seen{Given: absent, Current: v1, Content: exactly(50), Template: exactly(40)},
			due,
		},
		"RolledOutSince": {
			"helm upgrade of ConfigMap and template together is one rollout",
			seen{Given: v1, Current: v2, Content: exactly(50), Template: exactly(51)},
			recorded(input.DeliveredByRollout),
		},
		"RollsOut": {
			"only the revision will show whether its pods are new",
			seen{Given: v1, Current: v2, Content: exactly(50), Template: exactly(51), OlderPods: true, Unobserved: true},
			settled(input.GenerationNotObserved),
		},
		"RollsOutObserved": {
			"pods of the revision may have run since before the content",
			seen{Given: v1, Current: v2, Content: exactly(50), Template: exactly(51), OlderPods: true},
			due,
		},
		"ChangedAfterItRollsOut": {
			"its pods may have started before",
			seen{Given: v1, Current: v2, Content: exactly(52), Template: exactly(51), OlderPods: true, Unobserved: true},
			due,
		},
		"RolledOutSinceByList": {
			"also when a list tells, as long as it is certain",
			seen{Given: v1, Current: v2, Content: upTo(50), Template: timeline.Bounds{Min: 51, Max: 60}},
			recorded(input.DeliveredByRollout),
		},
		"DeliveredBefore": {
			"killed between the patch and the record: a newer revision shows it",
			seen{Given: v1, Current: v2, Content: upTo(50), Template: upTo(60), CurrentShown: "2", Revisions: []timeline.Revision{{Created: at(1), Shown: input.Shown{input.ConfigMap("app"): input.Tracked("2")}.Marks()}}},
			recorded(input.DeliveredBefore),
		},
		"PatchUnrecorded": {
			"killed between the patch and the record: its pods loaded it, and its rollout is on trial",
			seen{
				Given: v1, Current: v2, Content: upTo(50), Template: upTo(60), WrittenAt: at(1), Unaccounted: true,
				Unrecorded: true, ShownVersion: "2", CurrentShown: "2", Revisions: rolledOut(at(3)),
			},
			recorded(input.DeliveredBefore),
		},
		"AnswerLost": {
			"the answer to the patch was lost: the watch shows it, and its rollout is on trial",
			seen{
				Given: v1, Current: v2, Content: exactly(50), Template: exactly(51), WrittenAt: at(1), Unaccounted: true,
				Unrecorded: true, ShownVersion: "2", CurrentShown: "2",
			},
			recorded(input.DeliveredBefore),
		},
		"MissingAndUnobserved": {
			"it is not known yet whether its pods run without the source",
			seen{Current: absent, Required: true, Unobserved: true},
			settled(input.GenerationNotObserved),
		},
		"ImmutableReplaced": {
			"pods of a rollout may load the old copy of their node, whoever started it",
			seen{Given: v1, Current: v2, Sealed: true, Content: exactly(50), Template: exactly(60)},
			configs.Verdict{Standing: input.Due, Reason: input.ImmutableReplaced},
		},
		"ImmutableTheSame": {
			"made again with the same content",
			seen{Given: v1, Current: v1, Sealed: true, Content: exactly(50)},
			settled(input.InStep),
		},
		"ImmutableReplacedAndRolled": {
			"a person has seen to the old copies",
			seen{Given: v1, Current: v2, Sealed: true, Content: exactly(50), Template: exactly(60), Unrecorded: true, ShownVersion: "2", CurrentShown: "2"},
			recorded(input.DeliveredBefore),
		},
		"AppearedUnderAPattern": {
			"a pattern looked for it before, and it was not there",
			seen{Current: v1, Searched: true, Content: upTo(50), Template: upTo(60), Created: at(30), Revisions: revisionOf(at(5))},
			due,
		},
		"AppearedBeforeARollout": {
			"pods of a later revision have read it",
			seen{Current: v1, Searched: true, Content: upTo(50), Template: upTo(60), Created: at(30), Revisions: revisionOf(at(31))},
			recorded(input.Baseline),
		},
		"NotSearchedBefore": {
			"the pattern is new, or its kind could not be listed",
			seen{Current: v1, Content: upTo(50), Template: upTo(60), Created: at(30), Revisions: revisionOf(at(5))},
			recorded(input.Baseline),
		},
		"ChangedWhileAway": {
			"no revision shows it: it is due",
			seen{Given: v1, Current: v2, Content: upTo(50), Template: upTo(60), CurrentShown: "2", Revisions: revisionOf(at(1))},
			due,
		},
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, tc := range decideCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := configs.Decide(tc.in.observation()); got != tc.want {
				t.Errorf("%s: %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestNoReasonIsUntested: the reasons of a single input are decided here, the
// others in package rollouts, whose test lists both sides.
func TestNoReasonIsUntested(t *testing.T) {
	t.Parallel()
	tested := map[input.Reason]bool{
		input.Unreadable: true, // TestAssessUnreadable: it needs no comparison
	}
	for _, tc := range decideCases() {
		tested[tc.want.Reason] = true
	}
	for _, e := range input.FollowExplanations() {
		if !tested[e.Reason] && !ofWorkload(e.Reason) {
			t.Errorf("no case of TestDecide gives %s", e.Reason)
		}
	}
}

// ofWorkload are the reasons that package rollouts gives.
func ofWorkload(r input.Reason) bool {
	switch r {
	case input.AwaitsTurn, input.AwaitsFirst, input.AwaitsWindow, input.AwaitsWorkload, input.AfterIgnored, input.Damped, input.VersionStopped, input.Stopped,
		input.NotFollowed, input.InvalidAnnotation, input.QuietWindow, input.Held, input.NextJob,
		input.Reloaded, input.WouldReload, input.ReloadFailed, input.StrategyOff, input.Evicting, input.Evicted,
		input.Refreshed, input.NotRefreshable, input.NoTemplate, input.SourceUnknown, input.TooManySources, input.TooManyKeys,
		input.RecordTooNew, input.BeyondStrategy, input.Released, input.Paused, input.AwaitsPods, input.OtherInstallation, input.Following, input.RecordFull, input.RecordUnwritable, input.ReloadOff, input.KindOff:
		return true
	default:
		return false
	}
}
