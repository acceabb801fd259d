package rollouts

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// decideCase is one situation and what has to be done.
type decideCase struct {
	reason   string
	intent   func(*settings.Intent)
	findings []input.Finding
	pending  time.Time
	cronjob  bool
	podsOff  string
	problem  string
	known    bool // on record
	tooNew   bool
	full     string // why the record has no room
	force    Force
	template Template
	notActed bool
	rollout  health.Status
	awaits   bool
	gates    Gates
	turn     TurnState
	stuck    bool            // until now something forbade to move it
	stays    []input.Finding // due and not to be moved
	want     Decision
	says     []string
}

func decideCases() map[string]decideCase {
	undone := barred(with(inStep(db), func(f *input.Finding) { f.Reason = input.Undone }), input.Undone, "")
	all := map[string]decideCase{
		"ImmutableReplaced": {
			reason:   "new pods may load the old copy of their node",
			findings: []input.Finding{barred(due(app, time.Hour), input.ImmutableReplaced, "")}, pending: ago(time.Hour), stuck: true,
			want: Decision{Verb: Hold, Reason: input.ImmutableReplaced, PendingSince: ago(time.Hour)}, says: []string{"configmap/app", "immutable"},
		},
		"Contested": {
			reason:   "another writer keeps putting it back",
			findings: []input.Finding{inStep(app), barred(image(due(db, time.Hour)), input.Contested, "is put back")}, pending: ago(time.Hour), stuck: true,
			want: Decision{Verb: Hold, Reason: input.Contested, PendingSince: ago(time.Hour)}, stays: []input.Finding{image(due(db, 0))},
			says: []string{"image/web is put back"},
		},
		"Quarantined": {
			reason:   "its rollout failed, and configuration is moved all the same",
			findings: []input.Finding{due(app, time.Hour), barred(image(due(db, time.Hour)), input.Quarantined, "failed here")}, pending: ago(time.Hour),
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true, PendingSince: ago(time.Hour)}, stays: []input.Finding{image(due(db, 0))},
		},
		"QuarantinedAlone": {
			reason:   "nothing else is due",
			findings: []input.Finding{barred(image(due(db, time.Hour)), input.Quarantined, "failed here")}, pending: ago(time.Hour), stuck: true,
			want: Decision{Verb: Hold, Reason: input.Quarantined, PendingSince: ago(time.Hour)}, stays: []input.Finding{image(due(db, 0))},
			says: []string{"image/web failed here"},
		},
		"QuarantinedForced": {
			reason:   "who rolls out configuration by hand does not ask for what failed",
			findings: []input.Finding{inStep(app), barred(image(due(db, time.Hour)), input.Quarantined, "failed here")}, force: ForceRollOut,
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true, PendingSince: now}, stays: []input.Finding{image(due(db, 0))},
		},
		"QuarantinedForcedAlone": {
			reason:   "and hears of it when nothing else is there",
			findings: []input.Finding{barred(image(due(db, time.Hour)), input.Quarantined, "failed here")}, force: ForceRollOut,
			want: Decision{Verb: Hold, Reason: input.Quarantined, PendingSince: now}, stays: []input.Finding{image(due(db, 0))},
			says: []string{"image/web failed here"},
		},
		"ContestedForced": {
			reason:   "two who write in turns end nothing, also by hand",
			findings: []input.Finding{barred(image(due(db, time.Hour)), input.Contested, "is put back")}, force: ForceRollOut,
			want: Decision{Verb: Hold, Reason: input.Contested, PendingSince: now}, stays: []input.Finding{image(due(db, 0))},
		},
		"QuarantinedForcedNow": {
			reason:   "a person insists",
			findings: []input.Finding{barred(image(due(db, time.Hour)), input.Quarantined, "failed here")}, force: ForceNow,
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"ForcedCronJobWithAnImage": {
			reason:   "an image that the template has takes no patch",
			findings: []input.Finding{due(app, time.Hour), image(inStep(db))}, force: ForceNow, cronjob: true,
			want: Decision{Verb: Remember, Reason: input.NextJob, Delivered: true},
		},
		"PutBack": {
			reason: "what failed does not wait for quiet",
			findings: []input.Finding{with(image(due(db, 0)), func(f *input.Finding) {
				f.Reason, f.ChangedAt, f.Why = input.PutBack, time.Time{}, "the rollout failed"
			})},
			want: Decision{Verb: RollOut, Reason: input.PutBack, Delivered: true}, says: []string{"the rollout failed"},
		},
		"Enforced": {
			reason: "who chose the image hears why it was replaced",
			findings: []input.Finding{with(image(due(db, time.Hour)), func(f *input.Finding) {
				f.Reason, f.Why = input.Enforced, "another writer had chosen it"
			})},
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true}, says: []string{"another writer had chosen it"},
		},
		"ImmutableReplacedForced": {
			reason:   "a person has seen to it",
			findings: []input.Finding{barred(due(app, time.Hour), input.ImmutableReplaced, "")}, force: ForceRollOut,
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"MovedByHand": {
			reason:   "pods of an older revision stay until a person deletes them",
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour), rollout: health.Status{Observed: true, OnDelete: true},
			want: Decision{Verb: RollOut, Reason: input.AwaitsPods, Delivered: true, PendingSince: ago(time.Hour), AwaitsStatus: true}, says: []string{"configmap/app", "OnDelete"},
		},
		"AwaitsPods": {
			reason:   "the template has it, and an older pod is left",
			findings: []input.Finding{inStep(app)}, pending: ago(time.Hour), awaits: true, rollout: byHand(1),
			want: Decision{Verb: Wait, Reason: input.AwaitsPods, PendingSince: ago(time.Hour), AwaitsStatus: true}, says: []string{"configmap/app", "OnDelete"},
		},
		"NoOlderPods": {
			reason:   "the last of them is gone",
			findings: []input.Finding{inStep(app)}, pending: ago(time.Hour), awaits: true, rollout: byHand(2),
			want: Decision{Verb: Remember, Reason: input.Reloaded}, says: []string{"configmap/app"},
		},
		"AwaitsPodsAndDue": {
			reason:   "a further change does not wait for them",
			findings: []input.Finding{inStep(app), due(db, time.Hour)}, pending: ago(time.Hour), awaits: true, rollout: byHand(1),
			want: Decision{Verb: RollOut, Reason: input.AwaitsPods, Delivered: true, PendingSince: ago(time.Hour), AwaitsStatus: true}, says: []string{"secret/db"},
		},
		"AwaitsPodsReverted": {
			reason:   "nobody waits for pods of what was reverted",
			findings: []input.Finding{barred(inStep(app), input.Undone, "1")}, awaits: true, rollout: byHand(1),
			want: Decision{Verb: Leave, Reason: input.Undone}, says: []string{"configmap/app"},
		},
		"BadSetting": {
			reason: "a workload with a setting that nobody understands is left alone, and its pending change is kept",
			intent: func(in *settings.Intent) {
				in.Mistakes.Problems = []settings.Problem{{Key: "k", Value: "v", Accepted: "a"}}
			},
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Leave, Reason: input.InvalidAnnotation, PendingSince: ago(time.Hour)},
			says: []string{`annotation k: "v"`, "accepted: a"},
		},
		"NothingToFollow": {
			reason: "nothing asks, nothing is remembered",
			want:   Decision{Verb: Ignore, Reason: input.NotFollowed},
		},
		"InStep": {
			reason:   "nothing to do",
			findings: []input.Finding{inStep(app), inStep(db)}, pending: ago(time.Minute),
			want: Decision{Verb: Leave, Reason: input.InStep}, says: []string{"configmap/app", "secret/db"},
		},
		"Baseline": {
			reason:   "only the record changes",
			findings: []input.Finding{inStep(app), recorded(db, input.Baseline)},
			want:     Decision{Verb: Remember, Reason: input.Baseline}, says: []string{"secret/db"},
		},
		"ReleasedWhileChanging": {
			reason:   "the hour of a hold does not use up the maximum delay",
			findings: []input.Finding{due(app, time.Second)}, pending: ago(time.Hour), stuck: true,
			want: Decision{Verb: Wait, Reason: input.QuietWindow, PendingSince: ago(time.Hour), Recheck: 4 * time.Second},
		},
		"LongQuiet": {
			reason:   "a window that is longer than the maximum delay is kept",
			intent:   func(in *settings.Intent) { in.Quiet = 5 * time.Minute },
			findings: []input.Finding{due(app, 2*time.Minute)}, pending: ago(2 * time.Minute),
			want: Decision{Verb: Wait, Reason: input.QuietWindow, PendingSince: ago(2 * time.Minute), Recheck: 3 * time.Minute},
		},
		"LongQuietIsBounded": {
			reason:   "and bounds itself: changes that keep coming do not postpone it for ever",
			intent:   func(in *settings.Intent) { in.Quiet = 5 * time.Minute },
			findings: []input.Finding{due(app, time.Second)}, pending: ago(5 * time.Minute),
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"Paused": {
			reason:   "a new template would restart no pod",
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour), rollout: health.Status{Paused: true},
			want: Decision{Verb: Hold, Reason: input.Paused, PendingSince: ago(time.Hour)}, says: []string{"spec.paused", "configmap/app"},
		},
		"PausedRefreshed": {
			reason:   "its pods can be refreshed all the same",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyRefresh },
			findings: []input.Finding{with(due(app, time.Hour), inVolume)}, rollout: health.Status{Paused: true},
			want: Decision{Verb: Refresh, Reason: input.Refreshed, Delivered: true},
		},
		"Unobserved": {
			reason:   "nobody can tell yet what another writer reverted",
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour), notActed: true,
			want: Decision{Verb: Wait, Reason: input.GenerationNotObserved, PendingSince: ago(time.Hour), AwaitsStatus: true},
		},
		"Released": {
			reason:   "a person accepts what was reverted",
			findings: []input.Finding{inStep(app), inStep(db)}, template: Template{Released: []input.ID{db}},
			want: Decision{Verb: Remember, Reason: input.Released}, says: []string{"secret/db"},
		},
		"Undone": {
			reason:   "what a person reverted stays back",
			findings: []input.Finding{inStep(app), undone},
			want:     Decision{Verb: Leave, Reason: input.Undone}, says: []string{"secret/db", "reverted"},
		},
		"Quiet": {
			reason:   "the window counts from the last change",
			findings: []input.Finding{due(app, 8*time.Second), due(db, 2*time.Second)}, pending: ago(8 * time.Second),
			want: Decision{Verb: Wait, Reason: input.QuietWindow, PendingSince: ago(8 * time.Second), Recheck: 3 * time.Second},
		},
		"QuietBegins": {
			reason:   "the first sight of a change begins the maximum delay",
			findings: []input.Finding{due(app, 0)},
			want:     Decision{Verb: Wait, Reason: input.QuietWindow, PendingSince: now, Recheck: 5 * time.Second},
		},
		"SettledSourcesDoNotDelay": {
			reason:   "only what is due counts for the window",
			findings: []input.Finding{due(app, 5*time.Second), with(inStep(db), func(f *input.Finding) { f.ChangedAt = now })}, pending: ago(5 * time.Second),
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"MaximumDelayBoundsQuiet": {
			reason:   "changes every second are delivered after the maximum delay",
			findings: []input.Finding{due(app, 0)}, pending: ago(58 * time.Second),
			want: Decision{Verb: Wait, Reason: input.QuietWindow, PendingSince: ago(58 * time.Second), Recheck: 2 * time.Second},
		},
		"PendingSinceTheFuture": {
			reason:   "a clock that was five minutes ahead does not lengthen the maximum delay",
			findings: []input.Finding{due(app, 0)}, pending: now.Add(5 * time.Minute),
			want: Decision{Verb: Wait, Reason: input.QuietWindow, PendingSince: now, Recheck: 5 * time.Second},
		},
		"MaximumDelayIsOver": {
			reason:   "although it changed just now",
			findings: []input.Finding{due(app, 0)}, pending: ago(time.Minute),
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"NoWindow": {
			reason:   "a window of zero moves at once",
			intent:   func(in *settings.Intent) { in.Quiet = 0 },
			findings: []input.Finding{due(app, 0)},
			want:     Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"ChangedNobodyKnowsWhen": {
			reason:   "a change without a time does not wait for ever",
			findings: []input.Finding{with(due(app, 0), func(f *input.Finding) { f.ChangedAt = time.Time{} })},
			want:     Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"Move": {
			reason:   "both changes in one move",
			findings: []input.Finding{due(app, 6*time.Second), due(db, 6*time.Second), recorded(input.Secret("tls"), input.Baseline)}, pending: ago(6 * time.Second),
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
			says: []string{"configmap/app 1111111111 -> 2222222222", "secret/db 1111111111 -> 2222222222"},
		},
		"MoveFromUnknown": {
			reason:   "a first sight that is due has no earlier version",
			findings: []input.Finding{with(due(app, time.Hour), func(f *input.Finding) { f.Delivered = fingerprint.Version{} })},
			want:     Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true}, says: []string{"configmap/app unknown -> 2222222222"},
		},
		"HeldWorkload": {
			reason:   "a hold keeps the change pending",
			intent:   func(in *settings.Intent) { in.Held, in.HeldBy = true, "freeze" },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)}, says: []string{settings.Hold, `"freeze"`, "configmap/app"},
		},
		"HeldAfterUndo": {
			reason:   "an undo that removes the annotation does not end the hold",
			template: Template{Hold: record.Hold{On: true, By: "incident 42", Undone: true}},
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)},
			says: []string{`held ("incident 42")`, "an undo removed the annotation " + settings.Hold, "run lockstep release to end it: configmap/app"},
		},
		"HeldWorkloadInStep": {
			reason:   "a hold on a workload in step holds nothing",
			intent:   func(in *settings.Intent) { in.Held = true },
			findings: []input.Finding{inStep(app)},
			want:     Decision{Verb: Leave, Reason: input.InStep},
		},
		"HeldSource": {
			reason:   "a held source must not reach the pods, so nothing does",
			findings: []input.Finding{due(app, time.Hour), barred(due(db, time.Hour), input.Held, "audit")}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)}, says: []string{"secret/db is held", `"audit"`},
		},
		"HeldSourceUnchanged": {
			reason:   "a held source that the pods have already keeps nobody",
			findings: []input.Finding{due(app, time.Hour), barred(inStep(db), input.Held, "")},
			want:     Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"UndoneBars": {
			reason:   "a rollout for another source would load what was reverted",
			findings: []input.Finding{due(app, time.Hour), undone}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.Undone, PendingSince: ago(time.Hour)}, says: []string{"secret/db 1111111111 was reverted"},
		},
		"Observe": {
			reason:   "told, and counted as given, so that switching it off restarts nobody",
			intent:   func(in *settings.Intent) { in.Observe = true },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Observe, Reason: input.WouldReload, Delivered: true}, says: []string{"configmap/app 1111111111 -> 2222222222"},
		},
		"CronJob": {
			reason:   "the next Job reads the new content by itself, at once",
			findings: []input.Finding{due(app, 0)}, cronjob: true,
			want: Decision{Verb: Remember, Reason: input.NextJob, Delivered: true},
		},
		"NoTemplate": {
			reason:  "an object without a pod template cannot be followed",
			problem: "spec.pod isn't a pod template",
			want:    Decision{Verb: Leave, Reason: input.NoTemplate}, says: []string{"spec.pod isn't a pod template"},
		},
		"NoTemplateNotAsked": {
			reason:  "and nobody is told of one that nobody asked for",
			intent:  func(in *settings.Intent) { in.Mode = settings.Unset },
			problem: "spec.pod isn't a pod template",
			want:    Decision{Verb: Ignore, Reason: input.NotFollowed},
		},
		"RecordFull": {
			reason:   "what cannot be put on record is not given: it would be given again and again",
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour), full: "the record is full",
			want: Decision{Verb: Leave, Reason: input.RecordFull, PendingSince: ago(time.Hour), Recheck: time.Minute}, says: []string{"is full"},
		},
		"TooManyPatterns": {
			reason:   "what it asks for is not even looked for",
			intent:   func(in *settings.Intent) { in.Mistakes.TooMany = "more than 64 patterns" },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Leave, Reason: input.TooManySources, PendingSince: ago(time.Hour)}, says: []string{"64 patterns"},
		},
		"TooManySources": {
			reason: "one workload must not fill the record of others, and keeps what it was given", known: true, pending: ago(time.Hour),
			findings: manySources(input.MaxInputs + 1),
			want:     Decision{Verb: Leave, Reason: input.TooManySources, PendingSince: ago(time.Hour)}, says: []string{"256"},
		},
		"LongNames": {
			reason: "a pod template may name anything, of any length", known: true, pending: ago(time.Hour),
			findings: []input.Finding{inStep(input.ConfigMap(strings.Repeat("a", input.MaxNames+1)))},
			want:     Decision{Verb: Leave, Reason: input.TooManySources, PendingSince: ago(time.Hour)}, says: []string{"names", "16 KiB"},
		},
		"ManySources": {
			reason:   "as many as there may be",
			findings: manySources(input.MaxInputs),
			want:     Decision{Verb: Leave, Reason: input.InStep},
		},
		"TemplateLost": {
			reason: "a template that is gone for a moment forgets nothing, whoever asked", known: true, pending: ago(time.Hour),
			intent:  func(in *settings.Intent) { in.Mode = settings.Unset },
			problem: "deployment/web in namespace shop, whose template it uses, is not found",
			want:    Decision{Verb: Leave, Reason: input.NoTemplate, PendingSince: ago(time.Hour)},
		},
		"TemplateLostNever": {
			reason: "unless somebody says never", known: true,
			intent:  func(in *settings.Intent) { in.Mode = settings.Never },
			problem: "deployment/web in namespace shop, whose template it uses, is not found",
			want:    Decision{Verb: Ignore, Reason: input.NotFollowed},
		},
		"Evict": {
			reason:   "evictions run until no older pod is left, so the change stays pending",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyEvict },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Evict, Reason: input.Evicting, PendingSince: ago(time.Hour), Recheck: evictionCheck, Eviction: Eviction{For: "configmap/app~2222222222", Begin: true}},
		},
		"Refresh": {
			reason:   "a refresh delivers at once",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyRefresh },
			findings: []input.Finding{with(due(app, time.Hour), inVolume)}, pending: ago(time.Hour),
			want: Decision{Verb: Refresh, Reason: input.Refreshed, Delivered: true}, says: []string{"configmap/app"},
		},
		"RefreshOfNothing": {
			reason:   "what is not mounted is not said to be refreshed",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyRefresh },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Refresh, Reason: input.NotRefreshable, Delivered: true},
		},
		"StrategyOff": {
			reason:   "a strategy without the permissions for it moves nothing, and never by another way than was asked for",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyEvict },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour), podsOff: "switch it on",
			want: Decision{Verb: Hold, Reason: input.StrategyOff, PendingSince: ago(time.Hour)}, says: []string{settings.Strategy, "evict", "switch it on"},
		},
		"ObserveBeforeStrategy": {
			reason:   "observing is the same for every strategy",
			intent:   func(in *settings.Intent) { in.Observe, in.Strategy = true, settings.StrategyEvict },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Observe, Reason: input.WouldReload, Delivered: true},
		},
		"RecordTooNew": {
			reason:   "a newer program knows what the workload was given; this one must not guess",
			findings: []input.Finding{recorded(app, input.Baseline)}, tooNew: true,
			want: Decision{Verb: Leave, Reason: input.RecordTooNew}, says: []string{"newer version"},
		},
		"BarsAddUp": {
			reason:   "a hold on what was reverted is a second bar, and the first stays when it ends",
			findings: []input.Finding{due(app, time.Hour), barred(undone, input.Held, "audit")}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.Undone, PendingSince: ago(time.Hour)},
		},
		"CronJobImage": {
			reason:   "an image comes with the template, so the next Job does not read it by itself",
			findings: []input.Finding{due(app, time.Hour), image(due(db, time.Hour))}, cronjob: true, pending: ago(time.Hour),
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"BarredImage": {
			reason:   "an image that is barred stays as the template has it, and holds nothing else",
			findings: []input.Finding{due(app, time.Hour), barred(image(due(db, time.Hour)), input.Undone, "")}, pending: ago(time.Hour),
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true, PendingSince: ago(time.Hour)}, stays: []input.Finding{image(due(db, 0))},
		},
		"OnlyABarredImage": {
			reason:   "nothing else is due, and the change waits",
			findings: []input.Finding{inStep(app), barred(image(due(db, time.Hour)), input.Held, "audit")}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)}, stays: []input.Finding{image(due(db, 0))},
			says: []string{`image/web is held ("audit"): image/web 1111111111 -> 2222222222`},
		},
		"BeyondStrategy": {
			reason:   "no eviction brings another image",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyEvict },
			findings: []input.Finding{image(due(db, time.Hour))}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.BeyondStrategy, PendingSince: ago(time.Hour)}, stays: []input.Finding{image(due(db, 0))},
			says: []string{"evict", "image/web"},
		},
		"RefreshBesideAnImage": {
			reason:   "what the strategy can deliver is delivered",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyRefresh },
			findings: []input.Finding{with(due(app, time.Hour), inVolume), image(due(db, time.Hour))}, pending: ago(time.Hour),
			want: Decision{Verb: Refresh, Reason: input.Refreshed, Delivered: true, PendingSince: ago(time.Hour)}, stays: []input.Finding{image(due(db, 0))},
		},
		"Forced": {
			reason:   "a person moves what is in step, only observed, and reverted, by the template",
			intent:   func(in *settings.Intent) { in.Observe, in.Strategy = true, settings.StrategyEvict },
			findings: []input.Finding{inStep(app), undone}, force: ForceRollOut,
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true}, says: []string{"configmap/app, secret/db"},
		},
		"ForcedHeld": {
			reason:   "a hold is respected, also of a source in step",
			findings: []input.Finding{inStep(app), barred(inStep(db), input.Held, "audit")}, force: ForceRollOut,
			want: Decision{Verb: Hold, Reason: input.Held, PendingSince: now}, says: []string{`secret/db is held ("audit")`},
		},
		"ForcedBeforeQuiet": {
			reason:   "the window counts",
			findings: []input.Finding{with(inStep(app), func(f *input.Finding) { f.ChangedAt = ago(2 * time.Second) })}, force: ForceRollOut,
			want: Decision{Verb: Wait, Reason: input.QuietWindow, PendingSince: now, Recheck: 3 * time.Second},
		},
		"ForcedNow": {
			reason:   "neither holds nor the window count",
			intent:   func(in *settings.Intent) { in.Held = true },
			findings: []input.Finding{barred(due(app, 0), input.Held, "")}, force: ForceNow,
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
		"ForcedHeldImage": {
			reason:   "what is held and comes with the template stays as it is",
			findings: []input.Finding{inStep(app), barred(image(inStep(db)), input.Held, "audit")}, force: ForceRollOut,
			want: Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true}, stays: []input.Finding{image(inStep(db))},
		},
		"ForcedCronJobWithout": {
			reason:   "nor when its sources do not exist",
			findings: []input.Finding{{ID: app, Reason: input.Missing, Live: true}}, force: ForceRollOut, cronjob: true,
			want: Decision{Verb: Remember, Reason: input.NextJob, Delivered: true}, stays: []input.Finding{{ID: app}},
		},
		"UndoneImageBesideAnother": {
			reason:   "what was reverted and is not due is not why another waits",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyEvict },
			findings: []input.Finding{image(due(db, time.Hour)), with(barred(image(inStep(db)), input.Undone, ""), func(f *input.Finding) { f.ID = input.Image("other") })}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.BeyondStrategy, PendingSince: ago(time.Hour)}, stays: []input.Finding{image(due(db, 0))},
		},
		"ForcedCronJob": {
			reason:   "a patch would start no Job",
			findings: []input.Finding{inStep(app)}, force: ForceNow, cronjob: true,
			want: Decision{Verb: Remember, Reason: input.NextJob, Delivered: true},
		},
		"Unreadable": {
			reason:   "a source that cannot be read keeps the others from nothing",
			findings: []input.Finding{{ID: db, Reason: input.Unreadable}, due(app, time.Hour)},
			want:     Decision{Verb: RollOut, Reason: input.Reloaded, Delivered: true},
		},
	}
	maps.Copy(all, gateCases())
	maps.Copy(all, turnCases())
	return all
}

func (tc decideCase) input() Observation {
	intent := auto()
	if tc.intent != nil {
		tc.intent(&intent)
	}
	in := Observation{
		Intent: intent, Assessment: input.Assessment{Findings: tc.findings}, State: WorkloadState{StartsPods: tc.cronjob, NoTemplate: tc.problem, Rollout: tc.rollout},
		Pods: PodState{Off: tc.podsOff}, Force: tc.force, Template: tc.template, History: History{NotActed: tc.notActed},
		Entry: record.Entry{Pending: record.Pending{PendingSince: tc.pending}, Unstored: record.Unstored{TooNew: tc.tooNew}}, RecordFull: tc.full, MaxDelay: time.Minute, Now: now,
		Gates: tc.gates, Turn: tc.turn,
	}
	if !tc.stuck {
		in.Entry.DelaySince = tc.pending
	}
	if tc.known {
		in.Entry.Inputs = map[input.ID]record.Delivered{app: {Version: v1}}
	}
	if tc.awaits {
		in.Entry.Inputs = map[input.ID]record.Delivered{app: {Version: v1, Awaits: true}}
	}
	return in
}

// byHand is a workload whose two pods a person replaces, so many of which have the
// current template.
func byHand(updated int) health.Status {
	const pods = 2
	return health.Status{Observed: true, OnDelete: true, Counted: true, Counts: health.Counts{Wanted: pods, Existing: pods, Updated: updated, Available: pods}}
}

// wantMoves is what is due, except what is said to stay.
func (tc decideCase) wantMoves() []input.Finding {
	if tc.want.Verb == Leave {
		return nil
	}
	return matching(tc.findings, func(f input.Finding) bool {
		stays := slices.ContainsFunc(tc.stays, func(s input.Finding) bool { return s.ID == f.ID })
		return (f.Standing == input.Due || tc.force != NoForce) && !stays
	})
}
