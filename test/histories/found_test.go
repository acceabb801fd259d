package histories_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/histories"
)

const (
	change, back = histories.Change, histories.ChangeBack
	app, db      = histories.ConfigMap, histories.Secret
)

// do is what happens to the workload or to Lockstep, and of what happens to a source.
func do(verbs ...histories.Verb) []histories.Action {
	all := make([]histories.Action, len(verbs))
	for i, v := range verbs {
		all[i] = histories.Action{Verb: v}
	}
	return all
}

func of(source string, verb histories.Verb) []histories.Action {
	return []histories.Action{{Verb: verb, Source: source}}
}

func undo(choice int) []histories.Action {
	return []histories.Action{{Verb: histories.Undo, Revision: choice}}
}

func settle() []histories.Action { return do(histories.Settle) }

// join makes the history of a Deployment, canary that of a Rollout, and stateful that of a
// StatefulSet. They begin and end with a settlement.
func join(parts ...[]histories.Action) histories.History {
	return histories.History{Actions: slices.Concat(settle(), slices.Concat(parts...), settle())}
}

func canary(parts ...[]histories.Action) histories.History {
	h := join(parts...)
	h.Canary = true
	return h
}

func stateful(parts ...[]histories.Action) histories.History {
	h := join(parts...)
	h.Stateful = true
	return h
}

// found are the shortest histories in which Lockstep broke the rules once.
func found() map[string]histories.History {
	settle := settle()
	return map[string]histories.History{
		// A rollout of another writer loaded a content that went back before Lockstep looked.
		"LoadedWhatWasBetween": join(do(histories.Rollout), of(app, change), do(histories.Undo), of(app, back)),
		// An old revision gets a new number also during a pause, and no pod restarts.
		"UndoneDuringPause": join(of(db, change), settle, do(histories.Pause), of(db, change), do(histories.Undo)),
		// The resume is the delivery then.
		"UndoneDuringPauseAndResumed": join(do(histories.Rollout, histories.Pause, histories.Undo), of(app, change), settle, do(histories.Resume)),
		// A workload that is made paused starts no pods.
		"OrphanedDuringPause": join(do(histories.Pause), of(db, change), do(histories.Orphan, histories.Make, histories.Rollout)),
		// What was reverted, is missing, and is followed by a rollout is reverted no more.
		"RevertedAndMissing": join(of(db, change), settle, do(histories.Undo), of(db, histories.Remove), of(app, change), settle, of(db, change), do(histories.Pause)),
		// What a patch gave that is not on record shows when the source is back.
		"KilledAndMissing": join(of(db, change), do(histories.KillAfterPatch), settle, of(db, histories.Remove), settle, of(db, back)),
		// The record of a workload that took over pods was lost with the process.
		"TakenOverAndKilled": join(do(histories.Orphan), of(db, change), do(histories.KillAfterPatch), settle, do(histories.Make), of(app, change)),
		// An undo before an orphan deletion, both while Lockstep was down, was not noticed.
		"UndoneAndOrphaned": join(of(db, change), settle, do(histories.Kill, histories.Undo, histories.Orphan, histories.Make)),
		// An undo and a redo made an old revision look as if it had been made for a content
		// that came later: a change was called reverted, and waited for ever.
		"RedoneAndContentGoesBack": join(of(db, change), settle, of(db, back), settle, do(histories.Undo), settle, do(histories.Undo, histories.Kill), of(db, back)),
		// An undo removed the annotation of a hold, and the next change was rolled out.
		"HeldAndUndone":          join(of(app, change), settle, do(histories.Hold), settle, do(histories.Undo), settle, of(app, change)),
		"HeldAndUndoneWhileDown": join(do(histories.Rollout, histories.Hold), settle, do(histories.Kill, histories.Undo, histories.Start), settle, of(app, change), settle, do(histories.Hold), settle, do(histories.Free)),
		// The patch of a process that was killed came and went, and so did the content. When it
		// returned, Lockstep took it for delivered, and after an undo alone for reverted.
		"KilledUndoneAndRolledOut": join(of(app, change), do(histories.KillAfterPatch), settle, of(app, back), do(histories.Undo, histories.Rollout), settle, do(histories.Kill), of(app, back)),
		"KilledAndUndone":          join(of(app, change), do(histories.KillAfterPatch), settle, of(app, back), do(histories.Undo), settle, do(histories.Kill), of(app, back)),
		// A canary that was aborted after a kill between patch and record was called delivered.
		"KilledAndAborted": canary(of(app, change), do(histories.KillAfterPatch), settle, do(histories.Abort)),
		// An abort counted as a rollout that had loaded a content from before it: Lockstep rolled
		// out, which ended the abort.
		"AbortedAfterContentWentBack": canary(do(histories.Rollout), of(app, change), of(app, back), settle, do(histories.Abort)),
		// Another writer's rollout was aborted before Lockstep looked, and what it had given was
		// called delivered.
		"RolledOutAndAborted": canary(of(app, change), do(histories.Rollout, histories.Abort)),
		// Argo Rollouts calls a template observed before it says which revision is its own: what
		// was reverted stayed so.
		"UndoneAndRolledOut": canary(of(app, change), settle, do(histories.Promote, histories.Undo, histories.Rollout)),
		// A gap of the watch hid a rollout and its undo. Lockstep waited for the status of the
		// Rollout, which was as before, and a change of the gap was never rolled out.
		"UndoneInGap": canary(do(histories.Gap, histories.Rollout, histories.Undo), of(app, change), do(histories.Look)),
		// A template was replaced, and came back during a pause, all in a gap of the watch: the
		// resume counted as a delivery, and a change was missed.
		"PausedInAGap": join(of(app, change), settle, do(histories.Gap, histories.Strip, histories.Pause, histories.Undo), of(app, change), do(histories.Look, histories.Strip, histories.Resume)),
		// The record of a workload that took over pods was not put down as its own, because it
		// was in step: after its next rollout a change was taken for a baseline.
		"TakenOverInStep": join(do(histories.Rollout, histories.Gap, histories.Orphan, histories.Make, histories.Look), settle, do(histories.Kill, histories.Rollout), of(db, change)),
		// Pods that waited for a Secret loaded what it was made with while there was no workload,
		// and the next change counted as its arrival.
		"ArrivedAndChanged": join(of(db, histories.Remove), do(histories.Delete, histories.Make, histories.Orphan), of(db, change), settle, of(db, change), do(histories.Make)),
		// A rollout counted as the delivery of a content that the watch had last seen, and that
		// had been replaced by then: should it be back, no pod would be restarted.
		"LoadedWhatWasUnseen": join(of(app, histories.HoldSource), of(app, change), settle, do(histories.Gap), of(app, change), do(histories.Rollout), of(app, change), do(histories.Look)),
		// A revision that got its number during a pause, or that another writer's edit had made
		// from it, counted as a delivery that was reverted, and other changes waited for ever.
		"EditedAndPausedWhileDown": join(of(db, change), settle, of(db, back), settle, undo(0), do(histories.Rollout, histories.Kill, histories.Pause), undo(2), of(db, back), settle, do(histories.Resume)),
		"RedoneDuringPause":        join(of(db, change), settle, of(db, back), settle, do(histories.Rollout, histories.Kill, histories.Strip, histories.Pause), undo(2), of(db, back), do(histories.Strip), settle, do(histories.Resume)),
		// A patch that was not on record was undone and redone by other writers: a revision from
		// between counted as one from before it.
		"KilledAndRedone": join(of(db, change), settle, do(histories.Rollout, histories.KillAfterPatch), of(db, back), settle, do(histories.Strip, histories.Undo), settle, do(histories.Strip)),
		// An undo brought back the annotation of a release that the controller had not seen, and
		// nothing counted as reverted.
		"ReleaseBroughtBack": join(of(db, change), settle, do(histories.Kill, histories.Release), undo(0), of(db, change), settle, undo(1)),
		// A write with equal content, a scaling, and a template that another program measures in another
		// way: no template was edited, and an upgrade doesn't restart pods.
		"WrittenScaledAndUpgraded": stateful(of(app, back), do(histories.Scale, histories.Upgrade)),
		// A write with equal content in the second before an undo isn't a change.
		"WrittenAndUndoneWhileDown": join(of(db, change), settle, of(app, back), do(histories.Kill), undo(0)),
		// Our own patch that isn't on record passed for another writer's rollout, because the pods had
		// started after the content: later, its version didn't count as reverted.
		"KilledAndStripped": stateful(do(histories.KillAfterPatch), of(db, change), settle, settle, do(histories.Strip)),
		// D1: a patch that was undone before it was on record must not be repeated.
		"KilledAndUndoneAtOnce": join(of(app, change), do(histories.KillAfterPatch), settle, undo(0), settle, of(db, change)),
		// D2: between two looks a template came and went, and a content around it. The pods have
		// loaded what was between, and template and content are as they were.
		"UndoneBetweenLooks": join(do(histories.Busy, histories.Rollout), of(app, change), undo(0), of(app, back), settle, of(db, change)),
		// D4: a canary is given up after a change that a hold kept back. The stable pods go on, and
		// have not loaded it.
		"CanaryGivenUp": canary(do(histories.Scale, histories.Hold, histories.Rollout), of(app, change), settle, undo(0), settle, do(histories.Free)),
		// A patch that is not on record, because a source was missing, passed for the last writer
		// of every later template: the undo of another writer's rollout was not noticed.
		"UndoneWhileMissing": join(do(histories.KillAfterPatch), of(db, change), settle, of(app, histories.Remove), of(db, change), settle, do(histories.Rollout), settle, undo(0)),
		// Our own patch loaded a Secret that Lockstep had not seen yet, and was undone. Nothing told
		// which revisions came before it.
		"PatchedBeforeItSaw": join(do(histories.Pause), of(app, change), settle, do(histories.Late), of(db, change), do(histories.Resume), settle, undo(0)),
		// What another writer's rollout gave was compared by what the template showed, which was an
		// earlier version: an undo during a pause counted, or did not count, by mistake.
		"ShownDuringPause": join(of(app, change), settle, undo(0), of(app, change), settle, of(app, back), undo(0), do(histories.Pause), of(app, change), undo(1)),
		"ShownEarlier":     join(of(app, change), settle, of(db, change), do(histories.Rollout, histories.Pause), of(db, change), undo(0), of(db, back), settle, do(histories.Resume)),
		// An abort took nothing back: the content had gone back before the canary, in a gap of the
		// watch, and the stable pods have it.
		"AbortedInAGap": canary(do(histories.Hold), of(db, change), settle, do(histories.Gap), of(db, back), do(histories.Rollout, histories.Abort, histories.Look)),
		// A patch that used an old revision again was undone before it was on record, and repeated.
		"KilledAndUndoneAgain":     join(of(app, change), settle, of(app, change), undo(0), do(histories.KillAfterPatch), of(app, back), settle, undo(0)),
		"KilledAndUndoneAfterRedo": join(of(app, change), settle, of(app, change), settle, do(histories.Rollout, histories.KillAfterPatch), undo(0), of(app, back), settle, undo(0)),
		// A patch that showed what the template showed already was undone before it was on record,
		// and repeated.
		"KilledAndShownAgain": join(of(app, change), settle, of(app, change), settle, undo(1), of(app, change), undo(0), do(histories.KillAfterPatch), of(app, back), settle, undo(2)),
		// The record of a workload that was deleted with its pods was taken for that of another one,
		// which came and went unseen and left its pods.
		"AnotherTookOver": join(of(db, change), settle, do(histories.Delete), settle, of(db, change), do(histories.Kill, histories.Make, histories.Orphan), of(db, back), do(histories.Make)),
		// A new digest of an unchanged template counted as another writer's rollout: a content that
		// went back was unknown, what a person had released was reverted again, and a hold that a
		// person had ended was there again.
		"UpgradedAndContentBack": join(do(histories.Upgrade), of(db, change), of(db, histories.HoldSource), do(histories.Start), of(db, back)),
		"UpgradedAfterRelease":   join(of(app, change), settle, undo(0), settle, do(histories.Release), settle, do(histories.Upgrade)),
		"UpgradedAfterHold":      join(of(app, change), settle, undo(0), do(histories.Hold), settle, do(histories.Free, histories.Upgrade)),
		"UpgradedStateful":       stateful(of(app, change), settle, undo(0), settle, do(histories.Release), settle, do(histories.Upgrade)),
		// So did one during a pause, which hides whether a person has edited the template.
		"UpgradedDuringAPause": join(of(app, change), settle, undo(0), settle, do(histories.Release), settle, do(histories.Upgrade, histories.Pause)),
		// A template came and went, and its number came later than the look, or without one. The
		// end of a hold looked like an undo that had removed it.
		"HeldAfterAGap":    join(do(histories.Gap, histories.Rollout), undo(0), do(histories.Look, histories.Hold), settle, do(histories.Kill, histories.Free), settle, of(app, change)),
		"HeldDuringAGap":   canary(do(histories.Hold), settle, do(histories.Gap, histories.Rollout), undo(0), do(histories.Look), settle, do(histories.Free), settle, of(app, change)),
		"HeldDuringAPause": join(do(histories.Hold, histories.Rollout, histories.Pause), undo(0), settle, undo(0), settle, do(histories.Resume, histories.Free), settle, of(app, change)),
		// Such a template counted as the delivery of what it showed, although that was during a pause,
		// and the resume as reverting it.
		"ResumedAfterARedo": canary(do(histories.Scale), of(db, change), settle, do(histories.Promote), settle, of(db, back), settle, do(histories.Pause, histories.Rollout), undo(1), undo(0), of(db, back), do(histories.Resume)),
		// A template of a pause got its number at the resume. After a restart it looked as if another
		// one had come and gone: a rollout for which nothing was due.
		"ResumedAfterARestart": join(of(db, change), do(histories.Kill, histories.Pause, histories.Rollout), settle, of(db, back), settle, do(histories.Resume)),
		// A content that Lockstep saw late counted as given by the making of the workload, and an undo
		// as reverting it.
		"BaselineSeenLate": join(do(histories.Rollout, histories.Orphan, histories.Later, histories.Late), of(app, change), do(histories.Make), slices.Repeat(do(histories.Start), 12), undo(0)),
		// Our patch loaded a Secret that the broken watch had not seen, and the pods were taken over
		// before it was back: the Secret that it had seen counted as given.
		"TakenOverInAGap": join(of(app, histories.HoldSource), of(db, change), do(histories.Gap), of(db, change), of(db, change), slices.Repeat(do(histories.Start), 25), of(app, change), do(histories.Orphan, histories.Look, histories.Make)),
		// Pods that were taken over were replaced, and their template was back before Lockstep checked: its rollout counted
		// as not begun.
		"TakenOverAndBackAgain": join(do(histories.Kill), of(app, histories.HoldSource), do(histories.Rollout), of(app, change), do(histories.Orphan), of(app, change), of(db, change), settle, do(histories.Make), of(app, change), settle, do(histories.Busy), undo(1), undo(1)),
		// The revision of a patch from before an undo counted as a later delivery, which the undo had reverted.
		"WrittenKilledAndUndone": join(of(db, back), of(app, change), do(histories.KillAfterPatch), settle, undo(0), settle, do(histories.Gap, histories.Look)),
		// A content was due because pods may have loaded another one, and then a revision from before that counted as its
		// delivery, and an abort as reverting it.
		"RedoneAndTouchedWhileDown": canary(do(histories.KillAfterPatch), of(db, change), settle, undo(0), undo(0), of(app, histories.HoldSource), settle, do(histories.Abort)),
		// Only the revision shows whether pods of another writer's rollout are new, and Lockstep didn't check again when
		// there was one.
		"RolledOutWhileMissing": canary(do(histories.Rollout), of(app, histories.Remove), of(db, change), do(histories.Scale), settle, do(histories.Rollout)),
		// A content from before our own patch was unknown after the undo of that patch.
		"BackBeforeThePatch": canary(do(histories.Scale), of(app, change), of(db, histories.Remove), of(db, back), settle, do(histories.Strip)),
		// What pods may have loaded in a gap of the watch was hidden by an undo, and due again after the release, which accepts
		// the undo without a rollout.
		"ReleasedAfterAGap": join(of(db, change), settle, of(db, change), do(histories.Gap), undo(0), of(db, back), do(histories.Look), settle, do(histories.Release)),
		// A rollout right after the pods were taken over was not noticed.
		"TakenOverAndUndone": join(of(app, change), settle, do(histories.Gap), of(db, change), do(histories.Orphan, histories.Make, histories.Busy, histories.Look, histories.Undo)),
	}
}

// edit is a change of the template, the annotation or a key.
func edit(a histories.Action) []histories.Action { return []histories.Action{a} }

// foundEdits are the histories in which pods ran old content and Lockstep called it delivered. They
// are played for every kind.
func foundEdits() map[string]histories.History {
	reference := func(source, key string) []histories.Action {
		place := histories.Env
		if key == "" {
			place = histories.Volume
		}
		return edit(histories.Action{Verb: histories.AddReference, Ref: histories.Reference{Place: place, Source: source, Key: key}})
	}
	swap := edit(histories.Action{Verb: histories.SwapSource, Source: "configmap/extra"})
	changed := func(source string) []histories.Action {
		return edit(histories.Action{Verb: change, Source: source, Key: "a"})
	}
	cut := func(source string) []histories.Action {
		return edit(histories.Action{Verb: histories.RemoveKey, Source: source, Key: "b"})
	}
	end := do(histories.Start, histories.Look)
	// A later write of the workload that doesn't change its template.
	touch := slices.Concat(do(histories.Later, histories.Hold, histories.Free, histories.Later), end)
	all := map[string]histories.History{
		// A source is gone, and only the annotation still lists it, while older pods run: the
		// decision ended in a panic.
		"ListedAndRemoved": join(edit(histories.Action{Verb: histories.List, Revision: 3}), do(histories.Rollout), of(db, histories.Remove), edit(histories.Action{Verb: histories.RemoveReference, Revision: 1})),
	}
	const app, extra = "configmap/app", "configmap/extra"
	later := do(histories.Later)
	backTo := edit(histories.Action{Verb: back, Source: app, Key: "a"})
	// A key or an optional source came or went while pods started, and later it was as before:
	optional := func(place histories.Place, source, key string) []histories.Action {
		return edit(histories.Action{Verb: histories.AddReference, Ref: histories.Reference{Place: place, Source: source, Key: key, Optional: true}})
	}
	key := func(verb histories.Verb) []histories.Action {
		return edit(histories.Action{Verb: verb, Source: "secret/db", Key: "c"})
	}
	all["KeyWentDuringAPause"] = join(reference("secret/db", "c"), do(histories.Pause), key(change), settle(), key(histories.RemoveKey))
	all["SkippedInAVolume"] = join(of("secret/db", histories.Remove), optional(histories.Volume, "secret/db", ""), settle(), of("secret/db", back))
	all["WentAtTheLastPod"] = join(optional(histories.Init, extra, "b"), settle(), do(histories.Rollout), of(extra, histories.Remove), settle(), of(extra, back))
	// A version that no rollout on record has delivered counted as delivered.
	// Our own patch, not on record yet, while pods are replaced by hand:
	all["ByHandAndKilled"] = join(do(histories.ByHand), settle(), do(histories.KillAfterPatch), changed(app), later, end)
	// A source that some places require and others don't, missing when pods start:
	mixed := histories.Action{Verb: histories.AddReference, Ref: histories.Reference{Place: histories.Projected, Source: db, Optional: true}}
	all["GoneFromSomePlaces"] = join(edit(mixed), settle(), of(db, histories.Remove), settle(), do(histories.Rollout), later, of(db, back))
	// A release while pods of an earlier revision, with other keys, are left:
	file := histories.Action{Verb: histories.SwapReference, Revision: 1, Ref: histories.Reference{Place: histories.Volume, Source: db, Key: "a"}}
	all["ReleasedByHand"] = join(do(histories.ByHand), edit(file), settle(), changed(db), settle(), undo(0), settle(), do(histories.Release), settle(), of(db, histories.Restore))
	// Our own patch again, and the cache shows the workload from before it:
	all["OwnPatchUnseenByHand"] = join(do(histories.Busy), changed(app), do(histories.Later, histories.Start, histories.ByHand))
	// A required source that was deleted and made again after pods had started with it:
	all["MadeAgain"] = join(do(histories.Yield), reference(extra, "a"), later, of(extra, histories.Remove), changed(extra), end)
	all["WaitedForAndMadeAgain"] = join(of(extra, histories.Remove), settle(), reference(extra, ""), settle(), do(histories.Yield), changed(extra), later, of(extra, histories.Remove), changed(extra), end)
	// A rollout that Lockstep missed was undone in the middle, and nothing told what came before it:
	all["UndoneInTheMiddle"] = join(do(histories.Kill), changed(app), later, do(histories.Rollout, histories.Start), edit(histories.Action{Verb: histories.Undo}))
	// Two rollouts that Lockstep missed. The second one got stuck, and was undone, so pods of the first one went on:
	roll := do(histories.Later, histories.Rollout, histories.Later)
	stuck := edit(histories.Action{Verb: histories.RemoveKey, Source: db, Key: "a"})
	all["SecondRolloutStuck"] = join(reference(db, "a"), settle(), do(histories.Gap), changed(db), roll, stuck, roll, do(histories.Look), undo(0))
	// A rollout before a pause that no watch saw begin:
	all["SourceAddedBeforeAPause"] = join(do(histories.Kill), reference(extra, "a"), do(histories.Later, histories.Pause), changed(extra), do(histories.Start), settle(), do(histories.Resume))
	all["BackBeforeAPause"] = join(do(histories.Kill), changed(app), do(histories.Later, histories.Rollout, histories.Later), backTo, do(histories.Pause, histories.Start), settle(), do(histories.Resume))
	// A source that the annotation lists since a downtime, and that changed after that:
	all["ListedWhileDown"] = join(do(histories.Kill), edit(histories.Action{Verb: histories.List, Revision: 2}), later, changed(extra), end)
	// Our own patch, not on record yet, whose marks another writer's rollout kept:
	all["KilledAndRewritten"] = join(do(histories.KillAfterPatch), changed(app), later, changed(app), do(histories.Later, histories.Rollout, histories.Later), backTo, end)
	// The workload used nothing before a downtime, and wasn't on record any more:
	drop := edit(histories.Action{Verb: histories.RemoveReference})
	all["NothingUsedWhileUp"] = join(drop, drop, settle(), do(histories.Kill), reference(extra, ""), later, changed(extra), end)
	// A template that came and went while Lockstep was down, and loaded a content that did, too. StatefulSets and
	// DaemonSets don't number their templates, and the record of a new Deployment may be older than its number:
	all["TemplateAndContentWereBack"] = join(do(histories.Kill, histories.Rollout, histories.Later), changed(app), do(histories.Later, histories.Undo, histories.Later), backTo, later, end)
	// A Rollout showed the next revision number before the watch showed the template that our own patch had lent it, and then
	// that patch was undone:
	all["UndoneAfterOurPatch"] = join(slices.Repeat(slices.Concat(changed(app), later, later, undo(0), settle()), 3))
	// A pod was replaced while nothing else happened, and loaded what a hold or a pause kept back, or nothing:
	deleted := do(histories.DeletePod)
	all["PodReplacedDuringAHold"] = join(do(histories.Hold), settle(), changed(app), deleted, settle(), backTo, settle(), do(histories.Free))
	all["PodReplacedDuringAPause"] = join(do(histories.Pause), settle(), changed(app), settle(), deleted, settle(), backTo, settle(), do(histories.Resume))
	all["PodReplacedWithoutASource"] = join(optional(histories.Init, extra, "b"), settle(), of(extra, histories.Remove), deleted, settle(), of(extra, histories.Restore))
	// While Lockstep was down, or its watches were, or no leader decided, the template began to use
	// another key or source, and a content changed after that rollout.
	for name, begin := range map[string]histories.Verb{"Down": histories.Kill, "Gap": histories.Gap, "LeaderGap": histories.Yield} {
		all["KeyAdded"+name] = join(do(begin), reference("configmap/app", "b"), changed("configmap/app"), end)
		all["SourceAdded"+name] = join(do(begin), reference("configmap/extra", ""), changed("configmap/extra"), end)
		all["BackAndTouched"+name] = join(do(begin, histories.Later), changed("configmap/app"), do(histories.Later, histories.Rollout, histories.Later), edit(histories.Action{Verb: back, Source: "configmap/app", Key: "a"}), touch)
		all["CutAndTouched"+name] = join(do(begin, histories.Later), reference("configmap/app", ""), do(histories.Later), cut("configmap/app"), touch)
		all["ArrivedAndCut"+name] = join(of("configmap/extra", histories.Remove), settle(), reference("configmap/extra", ""), settle(), do(begin, histories.Later), of("configmap/extra", histories.Restore), do(histories.Later), cut("configmap/extra"), touch)
		all["SourceSwapped"+name] = join(do(begin), swap, changed("configmap/extra"), end)
	}
	return all
}

func TestFoundEdits(t *testing.T) {
	t.Parallel()
	for name, h := range foundEdits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for _, kind := range histories.Kinds() {
					h.Kind, h.Edits = kind, true
					if isByHand := slices.ContainsFunc(h.Actions, func(a histories.Action) bool { return a.Verb == histories.ByHand }); isByHand && !kind.HasOnDelete() {
						continue
					}
					for seed := range uint64(8) { // delays differ
						h.Seed = seed
						playEdited(t, h)
					}
				}
			})
		})
	}
}

func TestFound(t *testing.T) {
	t.Parallel()
	for name, h := range found() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for seed := range uint64(12) { // delays differ
					h.Seed = seed
					playInProcess(t, h)
				}
			})
		})
	}
}

// TestFoundOnPlane plays those that take no luck to the built controller.
func TestFoundOnPlane(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll)
	for _, name := range []string{"UndoneDuringPause", "UndoneDuringPauseAndResumed", "UndoneAndOrphaned", "KilledAndAborted"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playOnPlane(t, found()[name])
		})
	}
}
