package rollouts

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// turnCases are changes that wait for other workloads.
func turnCases() map[string]decideCase {
	changed := []input.Finding{due(app, time.Hour)}
	refused := TurnState{Refused: true}
	canary := TurnState{Refused: true, Canary: "deployment/canary in namespace shop goes first, and waits (QuietWindow)"}
	repair := []input.Finding{with(image(due(db, time.Hour)), func(f *input.Finding) { f.Reason = input.PutBack })}
	stopped := barred(due(app, time.Hour), input.VersionStopped, "failed on deployment/a in namespace shop")
	stoppedImage := barred(image(due(db, time.Hour)), input.VersionStopped, "failed on deployment/a in namespace shop")
	stops := Decision{Verb: Hold, Reason: input.VersionStopped, PendingSince: ago(time.Hour)}
	rolls := Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true}
	return map[string]decideCase{
		"Turn":       {reason: "others go first", findings: changed, turn: refused, pending: ago(time.Hour), want: Decision{Verb: Wait, Reason: input.AwaitsTurn, PendingSince: ago(time.Hour)}, says: []string{"configmap/app"}},
		"TurnCanary": {reason: "a user chose another one to go first, and that one can't begin", findings: changed, turn: canary, pending: ago(time.Hour), want: Decision{Verb: Wait, Reason: input.AwaitsFirst, PendingSince: ago(time.Hour)}, says: []string{"deployment/canary", "QuietWindow", "configmap/app"}},
		"TurnRepair": {reason: "a repair doesn't wait", findings: repair, turn: refused, want: Decision{Verb: RollOut, Reason: input.PutBack, Delivered: true}},
		"TurnForced": {reason: "a person rolls it out by hand", findings: changed, turn: refused, force: ForceRollOut, want: rolls},
		"TurnHeld":   {reason: "a hold needs a user, so it is shown first", findings: changed, turn: refused, intent: func(in *settings.Intent) { in.Held = true }, pending: ago(time.Hour), stuck: true, want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)}},

		"VersionStopped":      {reason: "it failed elsewhere", findings: []input.Finding{stopped}, pending: ago(time.Hour), stuck: true, want: stops, says: []string{"configmap/app 2222222222", "failed on deployment/a in namespace shop"}},
		"VersionStoppedHad":   {reason: "the pods have loaded it before it failed elsewhere", findings: []input.Finding{barred(inStep(app), input.VersionStopped, ""), due(db, time.Hour)}, stays: []input.Finding{}, want: rolls},
		"VersionStoppedImage": {reason: "a stopped image stays as the template has it", findings: append([]input.Finding{stoppedImage}, changed...), stays: []input.Finding{stoppedImage}, pending: ago(time.Hour), want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true, PendingSince: ago(time.Hour)}},
		"VersionStoppedRoll":  {reason: "a person has to insist", findings: []input.Finding{stopped}, force: ForceRollOut, stuck: true, want: Decision{Verb: Hold, Reason: input.VersionStopped, PendingSince: now}},
		"VersionStoppedNow":   {reason: "a person insists", findings: []input.Finding{stopped}, force: ForceNow, want: rolls},
	}
}
