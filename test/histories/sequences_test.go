package histories_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/test/histories"
)

// sequence is a history with its outcome: the reason that Lockstep gives at each settlement,
// the number of its rollouts until then, and with a minus each source that is on record as
// reverted. "Undone 1 -app" says that the one rollout was undone.
type sequence struct {
	history histories.History
	want    string
}

// sequences are what docs/reference/reload.md says of actions that follow each other. The model judges
// them too. It knows what Lockstep may do, and the outcome here is what Lockstep does.
func sequences() map[string]sequence {
	settle := settle()
	scaled := do(histories.Scale, histories.Scale, histories.Scale) // the first may change nothing
	undone := slices.Concat(of(app, change), settle, undo(0), settle)
	const hold, free, pause, resume, kill = histories.Hold, histories.Free, histories.Pause, histories.Resume, histories.Kill
	const later = histories.Start // it runs already, so only a part of a second passes
	const remove, restore, holdIt, freeIt = histories.Remove, histories.Restore, histories.HoldSource, histories.FreeSource
	return map[string]sequence{
		// A later revision is current again after a redo, so nothing is reverted. So it is after
		// a rollout of another writer.
		"RedoAfterUndo": {join(undone, undo(0), settle, of(db, change), settle, undo(1), settle, do(histories.Rollout)), "Baseline 0, InStep 1, Undone 1 -app, InStep 1, InStep 2, Undone 2 -app -db, InStep 2"},
		// The undo of the Secret's rollout leaves the ConfigMap of the one before delivered.
		"UndoOfOneOfTwoRollouts": {join(of(app, change), settle, of(db, change), settle, undo(0)), "Baseline 0, InStep 1, InStep 2, Undone 2 -db"},
		// Other writers change much of a workload, and only its template matters.
		"ScalingTakesNothingBack": {join(of(app, change), settle, scaled, of(db, change), scaled), "Baseline 0, InStep 1, InStep 2"},
		// A tool writes a ConfigMap and a bad template, and a person takes the template back. Its
		// pods run the old content, and new pods would read the new one.
		"UndoOfAnothersRollout": {join(of(app, change), do(histories.Rollout), settle, undo(0), settle, do(kill, histories.Start), of(db, change)), "Baseline 0, InStep 0, Undone 0 -app, Undone 0 -app"},
		// A tool writes the old ConfigMap and the old template. That rollout delivers both.
		"RollbackOfAnothersRollout": {join(of(app, change), do(histories.Rollout), settle, of(app, back), undo(0), settle, of(db, change)), "Baseline 0, InStep 0, InStep 0, InStep 1"},
		// A hold on a source that was reverted adds to the bar, and its end leaves the bar.
		"HoldOnAnUndoneSource": {join(undone, of(app, holdIt), of(db, change), settle, of(app, freeIt)), "Baseline 0, InStep 1, Undone 1 -app, Undone 1 -app, Undone 1 -app"},
		// A release accepts what was reverted, without a rollout. It counts once.
		"Released": {join(undone, do(histories.Release), settle, undo(0), settle, undo(0), settle, of(db, change), settle, do(histories.Release)), "Baseline 0, InStep 1, Undone 1 -app, Released 1, InStep 1, Undone 1 -app, Undone 1 -app, InStep 2"},
		// The content goes back to what the template shows after an undo: the pods have not loaded
		// it since, so there is a rollout.
		"UndoneAndContentBack": {join(of(app, change), settle, of(app, change), settle, undo(0), settle, of(app, back), settle, do(kill), settle, of(app, back)), "Baseline 0, InStep 1, InStep 2, Undone 2 -app, InStep 3, InStep 3, InStep 4"},
		// An abort made pods of the stable revision, which loaded what existed. When the content
		// goes back to what that revision shows, all pods are replaced.
		"AbortedAndContentBack": {canary(of(app, change), settle, do(histories.Promote), settle, of(app, change), settle, do(histories.Abort), settle, of(app, back)), "Baseline 0, InStep 1, InStep 1, InStep 2, Undone 2 -app, InStep 3"},
		// The stable pods of a canary that is reverted go on. They have not read the change.
		"CanaryReverted": {canary(do(histories.Scale, hold, histories.Rollout), of(db, change), settle, undo(0), settle, do(free)), "Baseline 0, Held 0, Held 0, InStep 1"},

		// What was reverted stays so: after a detour of its content during a hold, with pods
		// that another workload takes over, when the source is made again, when the undo happened
		// while Lockstep was down, and when the workload was scaled then.
		"StaysBackAfterDetour":  {join(undone, do(hold), of(app, change), settle, of(app, back), settle, do(free), of(db, change)), "Baseline 0, InStep 1, Undone 1 -app, Held 1 -app, Undone 1 -app, Undone 1 -app"},
		"StaysBackWithItsPods":  {join(undone, do(histories.Orphan, histories.Make), of(db, change), settle, of(app, change)), "Baseline 0, InStep 1, Undone 1 -app, Undone 1 -app, InStep 2"},
		"StaysBackWhenRestored": {join(undone, of(app, remove), settle, of(db, change), settle, of(app, restore)), "Baseline 0, InStep 1, Undone 1 -app, Missing 1 -app, Missing 1 -app, Undone 1 -app"},
		"StaysBackWhileDown":    {join(of(app, change), settle, do(kill), undo(0), of(db, change)), "Baseline 0, InStep 1, Undone 1 -app"},
		"StaysBackWhenScaled":   {join(undone, do(kill), scaled, of(db, change)), "Baseline 0, InStep 1, Undone 1 -app, Undone 1 -app"},
		// So it does when an upgrade gives every template another digest, which restarts nothing.
		"StaysBackAfterUpgrade":         {join(undone, do(histories.Upgrade), settle, of(db, change)), "Baseline 0, InStep 1, Undone 1 -app, Undone 1 -app, Undone 1 -app"},
		"StaysBackWhileUpgraded":        {join(of(app, change), settle, do(histories.Upgrade), undo(0), of(db, change)), "Baseline 0, InStep 1, Undone 1 -app"},
		"StaysBackAfterUpgradeAborted":  {canary(of(app, change), settle, do(histories.Abort), settle, do(histories.Upgrade), settle, of(db, change)), "Baseline 0, InStep 1, Undone 1 -app, Undone 1 -app, Undone 1 -app"},
		"StaysBackAfterUpgradeStateful": {stateful(undone, do(histories.Upgrade), settle, of(db, change)), "Baseline 0, InStep 1, Undone 1 -app, Undone 1 -app, Undone 1 -app"},
		"Upgraded":                      {join(of(app, change), settle, do(histories.Upgrade), settle, of(db, change)), "Baseline 0, InStep 1, InStep 1, InStep 2"},
		// Revisions of a StatefulSet have no numbers that stay.
		"UndoOfOneOfTwoRolloutsStateful": {stateful(of(app, change), settle, of(db, change), settle, undo(0)), "Baseline 0, InStep 1, InStep 2, Undone 2 -db"},
		"RedoAfterUndoStateful":          {stateful(undone, undo(0), settle, of(db, change), settle, undo(1)), "Baseline 0, InStep 1, Undone 1 -app, InStep 1, InStep 2, Undone 2 -app -db"},
		// The workload stops asking and asks again, which begins anew: nothing is reverted, and
		// what Lockstep delivered before counts no more.
		"AskedAgainAfterUndo": {join(undone, do(histories.Leave), settle, do(histories.Ask), settle, of(db, change)), "Baseline 0, InStep 1, Undone 1 -app, NotFollowed 1, Baseline 1, InStep 2"},
		"AskedAgainAndBack":   {join(of(app, change), settle, of(app, change), settle, do(histories.Refuse), settle, do(histories.Ask), settle, do(kill), of(app, back)), "Baseline 0, InStep 1, InStep 2, NotFollowed 2, Baseline 2, InStep 3"},

		// No pod is restarted onto a missing source, not even for another one.
		"OtherChangesWhileMissing": {join(of(app, remove), settle, of(db, change), settle, of(app, restore)), "Baseline 0, Missing 0, Missing 0, InStep 1"},
		// A source counts by its content, however often it is made again.
		"Recreated": {join(of(app, remove), of(app, change), settle, do(kill), of(app, remove), of(app, change), of(db, remove), of(db, change), settle,
			do(kill), of(app, remove), settle, do(kill), of(app, change)), "Baseline 0, InStep 1, InStep 2, Missing 2, InStep 3"},
		// Of a workload that is made while Lockstep is down, what changed after its revision is due.
		"MadeWhileDown":           {join(do(histories.Delete, histories.Later), settle, do(kill, histories.Make, histories.Later)), "Baseline 0, Baseline 0, Baseline 0"},
		"MadeWhileDownAndChanged": {join(do(histories.Delete, histories.Later), settle, do(kill, histories.Make, histories.Later), of(app, change)), "Baseline 0, Baseline 0, InStep 1"},

		// While Lockstep is down, a rollout loads a content that goes back a second later. One that
		// loads what was there all along, or what is there at the end, gives nothing else.
		"LoadedWhileDown":      {join(do(kill), of(app, change), do(histories.Rollout, histories.Later), of(app, back)), "Baseline 0, InStep 1"},
		"BackBeforeItsRollout": {join(do(kill), of(app, change), do(histories.Later), of(app, back), do(histories.Later, histories.Rollout)), "Baseline 0, InStep 0"},
		"RolledOutWhileDown":   {join(do(kill, histories.Rollout, histories.Later)), "Baseline 0, InStep 0"},
		"UndoneWhileDown":      {join(of(app, change), settle, do(kill), undo(0), do(histories.Later)), "Baseline 0, InStep 1, Undone 1 -app"},
		"KilledUndoneAndBack":  {join(do(histories.KillAfterPatch), of(app, change), do(histories.Later), undo(0), do(histories.Later), of(app, back)), "Baseline 0, InStep 2"},

		// A patch that isn't on record is delivered, and is reverted by an undo.
		"KilledAfterPatch": {join(do(histories.KillAfterPatch), of(app, change), settle, settle, undo(0)), "Baseline 0, DeliveredBefore 1, Undone 1 -app"},

		// Our own patch whose answer is lost isn't another writer's rollout, and isn't sent again.
		"AnswerLost":         {join(do(histories.LoseAnswer), of(app, change), settle, undo(0), settle, of(db, change), settle, of(app, change)), "Baseline 0, InStep 1, Undone 1 -app, Undone 1 -app, InStep 2"},
		"AnswerLostStateful": {stateful(do(histories.LoseAnswer), of(app, change), settle, undo(0), settle, of(db, change), settle, of(app, change)), "Baseline 0, InStep 1, Undone 1 -app, Undone 1 -app, InStep 2"},

		// A change waits for the end of a pause or a hold, and is one rollout then.
		"Paused":              {join(do(pause), of(app, change), settle, do(resume)), "Baseline 0, Paused 0, InStep 1"},
		"PausedAndEdited":     {join(do(pause), of(app, change), settle, do(histories.Rollout), of(app, change), settle, do(resume)), "Baseline 0, Paused 0, Paused 0, InStep 0"},
		"PausedAndEditedBack": {join(do(pause), of(app, change), settle, do(histories.Rollout), undo(0), settle, do(resume)), "Baseline 0, Paused 0, Paused 0, InStep 1"},
		"PausedAndHeld":       {join(do(pause, hold), of(db, change), settle, do(kill, free), settle, do(resume)), "Baseline 0, Held 0, Paused 0, InStep 1"},
		"HeldWhileDown":       {join(do(hold), of(db, change), settle, do(kill, free)), "Baseline 0, Held 0, InStep 1"},
		"HeldSourceRestored":  {join(of(db, holdIt), of(db, change), settle, do(kill), of(db, remove), of(db, restore)), "Baseline 0, Held 0, InStep 1"},
		// A held source that has not changed is in no way. One that has keeps the others back.
		"HeldSource": {join(of(db, holdIt), of(app, change), settle, of(db, change), settle, of(app, change), settle, do(kill), settle, of(db, freeIt)), "Baseline 0, InStep 1, Held 1, Held 1, Held 1, InStep 2"},
		// A hold does not use up the maximum delay: what changes while it ends is one rollout.
		"HoldLongerThanMaximumDelay": {join(do(hold), of(app, change), settle, of(app, change), do(later, later, later, free), of(db, change)), "Baseline 0, Held 0, InStep 1"},
	}
}

// settlements is a world that notes the outcome of each settlement.
type settlements struct {
	*inProcess

	outcomes []string
}

func (w *settlements) eventually(try func() error) error {
	if err := try(); err != nil {
		return err
	}
	word, err := w.word()
	reason := word.Reason
	if reason == string(input.DeliveredByRollout) {
		reason = string(input.InStep) // that is what a second look finds
	}
	outcome := fmt.Sprintf("%s %d", reason, w.rollouts)
	for _, source := range slices.Sorted(maps.Keys(word.Back)) {
		if word.Back[source] {
			_, name, _ := strings.Cut(source, "/")
			outcome += " -" + name
		}
	}
	w.outcomes = append(w.outcomes, outcome)
	return err
}

func TestSequences(t *testing.T) {
	t.Parallel()
	for name, s := range sequences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for seed := range uint64(10) { // delays differ
					s.play(t, seed)
				}
			})
		})
	}
}

// TestBurst: changes of several sources within the quiet window are one rollout, when the
// window has passed after the last one.
func TestBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(10) {
			burst := join(slices.Repeat(slices.Concat(of(app, change), of(db, change)), 5))
			w := sequence{burst, "Baseline 0, InStep 1"}.play(t, seed)
			if w.waited < quiet || w.waited > quiet+time.Second {
				t.Errorf("rolled out %s after the last change, want %s", w.waited, quiet)
			}
		}
	})
}

// play plays the sequence with the delays of a seed.
func (s sequence) play(t *testing.T, seed uint64) *inProcess {
	t.Helper()
	s.history.Seed = seed
	w, err := newInProcess(s.history, false)
	if err != nil {
		t.Fatal(err)
	}
	noted := &settlements{inProcess: w}
	_, err = play(s.history, noted)
	if got := strings.Join(noted.outcomes, ", "); got != s.want || err != nil {
		_, trace, _ := playOnce(s.history, true)
		t.Fatalf("the settlements are\n%s, want\n%s\n%v\n\nThe history, with the delays of seed %d:\n%s\n\n%s", got, s.want, err, seed, s.history, strings.Join(trace, "\n"))
	}
	return w
}
