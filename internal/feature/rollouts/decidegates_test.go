package rollouts

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// gateCases are changes that wait for something other than their inputs.
func gateCases() map[string]decideCase {
	changed := []input.Finding{due(app, time.Hour)}
	stopped := Gates{Stopped: true, StoppedBy: "incident 42"}
	closed := Gates{Window: WindowState{Opens: now.Add(2 * time.Hour), Text: "0 5 * * * 1h", On: "on the namespace"}}
	after := Gates{After: "deployment/db"}
	tired := Gates{Damped: DampedState{Until: now.Add(time.Minute), Why: "it was rolled out 6 times in a row"}}
	repair := []input.Finding{with(image(due(db, time.Hour)), func(f *input.Finding) { f.Reason = input.PutBack })}
	rolls := Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true}
	waits := func(reason input.Reason, recheck time.Duration) Decision {
		return Decision{Verb: Wait, Reason: reason, PendingSince: ago(time.Hour), Recheck: recheck}
	}
	stops := Decision{Verb: Hold, Reason: input.Stopped, PendingSince: ago(time.Hour)}
	return map[string]decideCase{
		"Stopped":         {reason: "an operator stopped it", findings: changed, gates: stopped, pending: ago(time.Hour), stuck: true, want: stops, says: []string{"incident 42", "configmap/app"}},
		"StoppedAtOnce":   {reason: "no quiet window is waited for before the stop is shown", findings: []input.Finding{due(app, 0)}, gates: stopped, pending: ago(time.Hour), want: stops},
		"StoppedRepair":   {reason: "restoring an image is an automatic change too", findings: repair, gates: stopped, pending: ago(time.Hour), stuck: true, want: stops},
		"StoppedHeld":     {reason: "the operator's stop is shown, and the hold after it", findings: changed, gates: stopped, intent: func(in *settings.Intent) { in.Held = true }, pending: ago(time.Hour), stuck: true, want: stops},
		"StoppedObserve":  {reason: "observed versions would count as delivered", findings: changed, gates: stopped, intent: func(in *settings.Intent) { in.Observe = true }, pending: ago(time.Hour), stuck: true, want: stops},
		"StoppedRefresh":  {reason: "a refresh is a change of the pods", findings: []input.Finding{with(due(app, time.Hour), inVolume)}, gates: stopped, intent: func(in *settings.Intent) { in.Strategy = settings.StrategyRefresh }, pending: ago(time.Hour), stuck: true, want: stops},
		"StoppedJobImage": {reason: "an image of a CronJob needs a patch", findings: []input.Finding{image(due(db, time.Hour))}, cronjob: true, gates: stopped, pending: ago(time.Hour), stuck: true, want: stops},
		"StoppedJob":      {reason: "the next Job reads it whatever Lockstep does", findings: changed, cronjob: true, gates: stopped, want: Decision{Verb: Remember, Reason: input.NextJob, Delivered: true}},
		"StoppedInStep":   {reason: "nothing is due", findings: []input.Finding{inStep(app)}, gates: stopped, want: Decision{Verb: Leave, Reason: input.InStep}},
		"StoppedForced":   {reason: "a person rolls it out by hand", findings: changed, gates: stopped, force: ForceRollOut, want: rolls},

		"Window":        {reason: "it opens in two hours", findings: changed, gates: closed, pending: ago(time.Hour), stuck: true, want: waits(input.AwaitsWindow, 2*time.Hour), says: []string{"0 5 * * * 1h", "on the namespace", "configmap/app"}},
		"WindowOpen":    {reason: "it is open", findings: changed, gates: Gates{Window: WindowState{Text: "0 5 * * * 1h"}}, want: rolls},
		"WindowOpens":   {reason: "it opens now", findings: changed, gates: Gates{Window: WindowState{Opens: now}}, want: rolls},
		"WindowQuiet":   {reason: "more changes may come before it opens", findings: []input.Finding{due(app, time.Second)}, gates: closed, pending: ago(time.Second), stuck: true, want: Decision{Verb: Wait, Reason: input.QuietWindow, PendingSince: ago(time.Second), Recheck: 4 * time.Second}},
		"WindowRepair":  {reason: "a broken rollout isn't left until tomorrow", findings: repair, gates: closed, want: Decision{Verb: RollOut, Reason: input.PutBack, Delivered: true}},
		"WindowMixed":   {reason: "restoring the image would deliver the configuration too", findings: append([]input.Finding{due(app, time.Hour)}, repair...), gates: closed, pending: ago(time.Hour), stuck: true, want: waits(input.AwaitsWindow, 2*time.Hour)},
		"WindowForced":  {reason: "a person rolls it out by hand", findings: changed, gates: closed, force: ForceRollOut, want: rolls},
		"WindowStopped": {reason: "the stop counts whether or not the window is open", findings: changed, gates: Gates{Stopped: true, Window: closed.Window}, pending: ago(time.Hour), stuck: true, want: stops},

		"After":       {reason: "the database goes first", findings: changed, gates: after, pending: ago(time.Hour), want: waits(input.AwaitsWorkload, time.Minute), says: []string{"deployment/db", "configmap/app"}},
		"AfterHeld":   {reason: "a hold needs a user, so it is shown first", findings: changed, gates: after, intent: func(in *settings.Intent) { in.Held = true }, pending: ago(time.Hour), stuck: true, want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)}},
		"AfterRepair": {reason: "a repair waits for nobody", findings: repair, gates: after, want: Decision{Verb: RollOut, Reason: input.PutBack, Delivered: true}},
		"AfterForced": {reason: "a person rolls it out by hand", findings: changed, gates: after, force: ForceRollOut, want: rolls},

		"Damped":       {reason: "it was rolled out too often", findings: changed, gates: tired, pending: ago(time.Hour), want: waits(input.Damped, time.Minute), says: []string{"6 times", "configmap/app"}},
		"DampedOver":   {reason: "the pause is over", findings: changed, gates: Gates{Damped: DampedState{Until: now}}, want: rolls},
		"DampedRepair": {reason: "a repair doesn't wait", findings: repair, gates: tired, want: Decision{Verb: RollOut, Reason: input.PutBack, Delivered: true}},
		"DampedForced": {reason: "a person rolls it out by hand", findings: changed, gates: tired, force: ForceRollOut, want: rolls},

		"NamespaceHold": {
			reason: "the whole namespace is held", findings: changed, intent: func(in *settings.Intent) { in.NamespaceHeld, in.NamespaceHeldBy = true, "freeze" },
			pending: ago(time.Hour), stuck: true, want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)}, says: []string{"on its namespace", "freeze"},
		},
		"NamespaceHoldForced": {
			reason: "a person is asked to insist", findings: changed, intent: func(in *settings.Intent) { in.NamespaceHeld = true },
			force: ForceRollOut, want: Decision{Verb: Hold, Reason: input.Held, PendingSince: now},
		},
		"NamespaceHoldForcedNow": {
			reason: "and does", findings: changed, intent: func(in *settings.Intent) { in.NamespaceHeld = true },
			force: ForceNow, want: rolls,
		},
		"HeldRepair": {
			reason: "a hold also keeps an image whose rollout failed", findings: repair, intent: func(in *settings.Intent) { in.Held = true },
			pending: ago(time.Hour), stuck: true, want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)},
		},
	}
}

// TestGatesKeepTheDelay: while an operator or a window forbids the rollout, the maximum delay
// doesn't begin. Otherwise a change just before the opening would be delivered at once, and the
// next one again.
func TestGatesKeepTheDelay(t *testing.T) {
	t.Parallel()
	for name, gates := range map[string]Gates{
		"Stopped": {Stopped: true},
		"Window":  {Window: WindowState{Opens: now.Add(time.Hour)}},
	} {
		in := decideCase{findings: []input.Finding{due(app, time.Second)}, pending: ago(time.Hour), gates: gates}.input()
		if d := Decide(in); !d.DelaySince.IsZero() {
			t.Errorf("%s: the delay counts since %s", name, d.DelaySince)
		}
		in.Gates, in.Entry.DelaySince = Gates{}, time.Time{}
		if d := Decide(in); d.Reason != input.QuietWindow || d.Recheck != 4*time.Second {
			t.Errorf("%s: afterwards %s for %s, want the rest of the quiet window", name, d.Reason, d.Recheck)
		}
	}
}

// TestGatesInASeries: the kill switch ends a series of evictions between two pods; a window that
// closes doesn't, because the pods would have different versions until it opens.
func TestGatesInASeries(t *testing.T) {
	t.Parallel()
	const order = "configmap/app~2222222222"
	for name, tc := range map[string]struct {
		reason string
		gates  Gates
		series record.Eviction
		want   input.Reason
	}{
		"Stopped":  {"not one more pod", Gates{Stopped: true}, record.Eviction{For: order, Since: ago(time.Minute)}, input.Stopped},
		"Window":   {"it goes on", Gates{Window: WindowState{Opens: now.Add(time.Hour)}}, record.Eviction{For: order, Since: ago(time.Minute)}, input.Evicting},
		"After":    {"it goes on", Gates{After: "deployment/db"}, record.Eviction{For: order, Since: ago(time.Minute)}, input.Evicting},
		"Damped":   {"it goes on", Gates{Damped: DampedState{Until: now.Add(time.Hour)}}, record.Eviction{For: order, Since: ago(time.Minute)}, input.Evicting},
		"NotBegun": {"it doesn't begin", Gates{Window: WindowState{Opens: now.Add(time.Hour)}}, record.Eviction{}, input.AwaitsWindow},
		"Other":    {"nor does one for the next version", Gates{Window: WindowState{Opens: now.Add(time.Hour)}}, record.Eviction{For: "configmap/app~1111111111", Since: ago(time.Minute)}, input.AwaitsWindow},
	} {
		in := decideCase{intent: func(in *settings.Intent) { in.Strategy = settings.StrategyEvict }, findings: []input.Finding{due(app, time.Hour)}, gates: tc.gates}.input()
		in.Entry.Eviction, in.State.Replicas = tc.series, 1
		in.Pods.All = []pods.Pod{{Name: "old", Created: ago(time.Hour), Ready: true}}
		if d := Decide(in); d.Reason != tc.want || (d.Eviction.Victim != nil) != (tc.want == input.Evicting) {
			t.Errorf("%s: %s: %s, evicts %v; want %s", name, tc.reason, d.Reason, d.Eviction.Victim, tc.want)
		}
	}
}
