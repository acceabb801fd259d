package histories_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/lockstep-dev/lockstep/test/histories"
)

// found are the shortest histories in which Lockstep broke the rules once.
func found() map[string]histories.History {
	do := func(verbs ...histories.Verb) []histories.Action {
		all := make([]histories.Action, len(verbs))
		for i, v := range verbs {
			all[i] = histories.Action{Verb: v}
		}
		return all
	}
	of := func(source string, verb histories.Verb) []histories.Action {
		return []histories.Action{{Verb: verb, Source: source}}
	}
	undo := func(choice int) []histories.Action {
		return []histories.Action{{Verb: histories.Undo, Revision: choice}}
	}
	settle := do(histories.Settle)
	join := func(parts ...[]histories.Action) histories.History {
		return histories.History{Actions: slices.Concat(settle, slices.Concat(parts...), settle)}
	}
	canary := func(parts ...[]histories.Action) histories.History {
		h := join(parts...)
		h.Canary = true
		return h
	}
	const change, back = histories.Change, histories.ChangeBack
	const app, db = histories.ConfigMap, histories.Secret
	return map[string]histories.History{
		// A rollout of another writer loaded a content that went back before Lockstep looked.
		"LoadedWhatWasBetween": join(do(histories.Rollout), of(app, change), do(histories.Undo), of(app, back)),
		// An old revision gets a new number also during a pause, and no pod restarts.
		"UndoneDuringPause": join(of(db, change), settle, do(histories.Pause), of(db, change), do(histories.Undo)),
		// The resume is the delivery then.
		"UndoneDuringPauseAndResumed": join(do(histories.Rollout, histories.Pause, histories.Undo), of(app, change), settle, do(histories.Resume)),
		// A workload that is made paused starts no pods.
		"OrphanedDuringPause": join(do(histories.Pause), of(db, change), do(histories.Orphan, histories.Make, histories.Rollout)),
		// What was taken back, is missing, and is followed by a rollout is taken back no more.
		"TakenBackAndMissing": join(of(db, change), settle, do(histories.Undo), of(db, histories.Remove), of(app, change), settle, of(db, change), do(histories.Pause)),
		// What a patch gave that is not on record shows when the source is back.
		"KilledAndMissing": join(of(db, change), do(histories.KillAfterPatch), settle, of(db, histories.Remove), settle, of(db, back)),
		// The record of a workload that took over pods was lost with the process.
		"TakenOverAndKilled": join(do(histories.Orphan), of(db, change), do(histories.KillAfterPatch), settle, do(histories.Make), of(app, change)),
		// An undo before an orphan deletion, both while Lockstep was down, was not noticed.
		"UndoneAndOrphaned": join(of(db, change), settle, do(histories.Kill, histories.Undo, histories.Orphan, histories.Make)),
		// An undo and a redo made an old revision look as if it had been made for a content
		// that came later: a change was called taken back, and waited for ever.
		"RedoneAndContentGoesBack": join(of(db, change), settle, of(db, back), settle, do(histories.Undo), settle, do(histories.Undo, histories.Kill), of(db, back)),
		// An undo removed the annotation of a hold, and the next change was rolled out.
		"HeldAndUndone":          join(of(app, change), settle, do(histories.Hold), settle, do(histories.Undo), settle, of(app, change)),
		"HeldAndUndoneWhileDown": join(do(histories.Rollout, histories.Hold), settle, do(histories.Kill, histories.Undo, histories.Start), settle, of(app, change), settle, do(histories.Hold), settle, do(histories.Free)),
		// The patch of a process that was killed came and went, and so did the content. When it
		// returned, Lockstep took it for delivered, and after an undo alone for taken back.
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
		// was taken back stayed so.
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
		// from it, counted as a delivery that was taken back, and other changes waited for ever.
		"EditedAndPausedWhileDown": join(of(db, change), settle, of(db, back), settle, undo(0), do(histories.Rollout, histories.Kill, histories.Pause), undo(2), of(db, back), settle, do(histories.Resume)),
		"RedoneDuringPause":        join(of(db, change), settle, of(db, back), settle, do(histories.Rollout, histories.Kill, histories.Strip, histories.Pause), undo(2), of(db, back), do(histories.Strip), settle, do(histories.Resume)),
		// A patch that was not on record was undone and redone by other writers: a revision from
		// between counted as one from before it.
		"KilledAndRedone": join(of(db, change), settle, do(histories.Rollout, histories.KillAfterPatch), of(db, back), settle, do(histories.Strip, histories.Undo), settle, do(histories.Strip)),
		// An undo brought back the annotation of a release that the controller had not seen, and
		// nothing counted as taken back.
		"ReleaseBroughtBack": join(of(db, change), settle, do(histories.Kill, histories.Release), undo(0), of(db, change), settle, undo(1)),
		// A rollout right after the pods were taken over was not noticed.
		"TakenOverAndUndone": join(of(app, change), settle, do(histories.Gap), of(db, change), do(histories.Orphan, histories.Make, histories.Look, histories.Undo)),
	}
}

func TestFound(t *testing.T) {
	t.Parallel()
	for name, h := range found() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for seed := range uint64(20) { // delays differ
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
	for _, name := range []string{"UndoneDuringPause", "UndoneDuringPauseAndResumed", "UndoneAndOrphaned", "KilledAndAborted"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playOnPlane(t, found()[name])
		})
	}
}
