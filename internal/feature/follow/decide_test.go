package follow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

var (
	v1 = fingerprint.Version{Basis: "1:*", Sum: "11111111111111111111111111111111"}
	v2 = fingerprint.Version{Basis: "1:*", Sum: "22222222222222222222222222222222"}

	now = time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	app = input.ConfigMap("app")
	db  = input.Secret("db")
)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// due is a source that changed so long ago.
func due(source input.ID, changed time.Duration) input.Finding {
	return input.Finding{ID: source, Standing: input.Due, Reason: input.Changed, Given: v1, Current: v2, Shows: v2.Short(), ChangedAt: ago(changed)}
}

func inStep(source input.ID) input.Finding {
	return input.Finding{ID: source, Standing: input.Settled, Reason: input.InStep, Given: v1, Current: v1, Shows: v1.Short()}
}

func recorded(source input.ID, reason input.Reason) input.Finding {
	return input.Finding{ID: source, Standing: input.Record, Reason: reason, Current: v1, Shows: v1.Short()}
}

func manySources(n int) []input.Finding {
	all := make([]input.Finding, n)
	for i := range all {
		all[i] = inStep(input.ConfigMap(fmt.Sprintf("app-%d", i)))
	}
	return all
}

func with(f input.Finding, change func(*input.Finding)) input.Finding {
	change(&f)
	return f
}

func inVolume(f *input.Finding) { f.Volume = true }

// auto is the intent of a workload that follows what it references.
func auto() settings.Intent {
	return settings.Intent{Mode: settings.Follow, Auto: true, Quiet: 5 * time.Second, Strategy: settings.StrategyTemplate}
}

// decideCase is one situation and what has to be done.
type decideCase struct {
	reason   string
	intent   func(*settings.Intent)
	findings []input.Finding
	pending  time.Time
	cronjob  bool
	pods     bool
	problem  string
	known    bool // on record
	want     Decision
	says     []string
}

func decideCases() map[string]decideCase {
	undone := with(inStep(db), func(f *input.Finding) { f.Reason, f.Barred = input.Undone, input.Undone })
	return map[string]decideCase{
		"BadSetting": {
			reason:   "a workload with a setting that nobody understands is left alone, and its pending change is kept",
			intent:   func(in *settings.Intent) { in.Problems = []settings.Problem{{Key: "k", Value: "v", Accepted: "a"}} },
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
		"Undone": {
			reason:   "what a person took back stays back",
			findings: []input.Finding{inStep(app), undone},
			want:     Decision{Verb: Leave, Reason: input.Undone}, says: []string{"secret/db", "taken back"},
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
			want: Decision{Verb: Move, Reason: input.Reloaded, Delivered: true},
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
			want: Decision{Verb: Move, Reason: input.Reloaded, Delivered: true},
		},
		"NoWindow": {
			reason:   "a window of zero moves at once",
			intent:   func(in *settings.Intent) { in.Quiet = 0 },
			findings: []input.Finding{due(app, 0)},
			want:     Decision{Verb: Move, Reason: input.Reloaded, Delivered: true},
		},
		"ChangedNobodyKnowsWhen": {
			reason:   "a change without a time does not wait for ever",
			findings: []input.Finding{with(due(app, 0), func(f *input.Finding) { f.ChangedAt = time.Time{} })},
			want:     Decision{Verb: Move, Reason: input.Reloaded, Delivered: true},
		},
		"Move": {
			reason:   "both changes in one move",
			findings: []input.Finding{due(app, 6*time.Second), due(db, 6*time.Second), recorded(input.Secret("tls"), input.Baseline)}, pending: ago(6 * time.Second),
			want: Decision{Verb: Move, Reason: input.Reloaded, Delivered: true},
			says: []string{"configmap/app 1111111111 -> 2222222222", "secret/db 1111111111 -> 2222222222"},
		},
		"MoveFromUnknown": {
			reason:   "a first sight that is due has no earlier version",
			findings: []input.Finding{with(due(app, time.Hour), func(f *input.Finding) { f.Given = fingerprint.Version{} })},
			want:     Decision{Verb: Move, Reason: input.Reloaded, Delivered: true}, says: []string{"configmap/app unknown -> 2222222222"},
		},
		"HeldWorkload": {
			reason:   "a hold keeps the change pending",
			intent:   func(in *settings.Intent) { in.Held, in.HeldBy = true, "freeze" },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)}, says: []string{settings.Hold, `"freeze"`, "configmap/app"},
		},
		"HeldWorkloadInStep": {
			reason:   "a hold on a workload in step holds nothing",
			intent:   func(in *settings.Intent) { in.Held = true },
			findings: []input.Finding{inStep(app)},
			want:     Decision{Verb: Leave, Reason: input.InStep},
		},
		"HeldSource": {
			reason:   "a held source must not reach the pods, so nothing does",
			findings: []input.Finding{due(app, time.Hour), with(due(db, time.Hour), func(f *input.Finding) { f.Barred, f.BarredBy = input.Held, "audit" })}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.Held, PendingSince: ago(time.Hour)}, says: []string{"secret/db is held", `"audit"`},
		},
		"HeldSourceUnchanged": {
			reason:   "a held source that the pods have already keeps nobody",
			findings: []input.Finding{due(app, time.Hour), with(inStep(db), func(f *input.Finding) { f.Barred = input.Held })},
			want:     Decision{Verb: Move, Reason: input.Reloaded, Delivered: true},
		},
		"UndoneBars": {
			reason:   "a rollout for another source would load what was taken back",
			findings: []input.Finding{due(app, time.Hour), undone}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.Undone, PendingSince: ago(time.Hour)}, says: []string{"secret/db 1111111111 was taken back"},
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
			problem: "spec.pod is no pod template",
			want:    Decision{Verb: Leave, Reason: input.NoTemplate}, says: []string{"spec.pod is no pod template"},
		},
		"NoTemplateNotAsked": {
			reason:  "and nobody is told of one that nobody asked for",
			intent:  func(in *settings.Intent) { in.Mode = settings.Unset },
			problem: "spec.pod is no pod template",
			want:    Decision{Verb: Ignore, Reason: input.NotFollowed},
		},
		"TooManySources": {
			reason: "one workload must not fill the record of others, and keeps what it was given", known: true, pending: ago(time.Hour),
			findings: manySources(maxSources + 1),
			want:     Decision{Verb: Leave, Reason: input.TooManySources, PendingSince: ago(time.Hour)}, says: []string{"256"},
		},
		"LongNames": {
			reason: "a pod template may name anything, of any length", known: true, pending: ago(time.Hour),
			findings: []input.Finding{inStep(input.ConfigMap(strings.Repeat("a", maxNames+1)))},
			want:     Decision{Verb: Leave, Reason: input.TooManySources, PendingSince: ago(time.Hour)}, says: []string{"names", "16 KiB"},
		},
		"ManySources": {
			reason:   "as many as there may be",
			findings: manySources(maxSources),
			want:     Decision{Verb: Leave, Reason: input.InStep},
		},
		"TemplateLost": {
			reason: "a template that is gone for a moment forgets nothing, whoever asked", known: true, pending: ago(time.Hour),
			intent:  func(in *settings.Intent) { in.Mode = settings.Unset },
			problem: "Deployment web, whose template it uses, is not found",
			want:    Decision{Verb: Leave, Reason: input.NoTemplate, PendingSince: ago(time.Hour)},
		},
		"TemplateLostNever": {
			reason: "unless somebody says never", known: true,
			intent:  func(in *settings.Intent) { in.Mode = settings.Never },
			problem: "Deployment web, whose template it uses, is not found",
			want:    Decision{Verb: Ignore, Reason: input.NotFollowed},
		},
		"Evict": {
			reason:   "evictions run until no older pod is left, so the change stays pending",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyEvict },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour), pods: true,
			want: Decision{Verb: Evict, Reason: input.Evicting, PendingSince: ago(time.Hour)},
		},
		"Refresh": {
			reason:   "a refresh delivers at once",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyRefresh },
			findings: []input.Finding{with(due(app, time.Hour), inVolume)}, pending: ago(time.Hour), pods: true,
			want: Decision{Verb: Refresh, Reason: input.Refreshed, Delivered: true}, says: []string{"configmap/app"},
		},
		"RefreshOfNothing": {
			reason:   "what is not mounted is not said to be refreshed",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyRefresh },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour), pods: true,
			want: Decision{Verb: Refresh, Reason: input.NotRefreshable, Delivered: true},
		},
		"StrategyOff": {
			reason:   "a strategy without the rights for it moves nothing, and never by another way than was asked for",
			intent:   func(in *settings.Intent) { in.Strategy = settings.StrategyEvict },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Hold, Reason: input.StrategyOff, PendingSince: ago(time.Hour)}, says: []string{settings.Strategy, "evict", "--pod-strategies"},
		},
		"ObserveBeforeStrategy": {
			reason:   "observing is the same for every strategy",
			intent:   func(in *settings.Intent) { in.Observe, in.Strategy = true, settings.StrategyEvict },
			findings: []input.Finding{due(app, time.Hour)}, pending: ago(time.Hour),
			want: Decision{Verb: Observe, Reason: input.WouldReload, Delivered: true},
		},
		"Unreadable": {
			reason:   "a source that cannot be read keeps the others from nothing",
			findings: []input.Finding{{ID: db, Reason: input.Unreadable}, due(app, time.Hour)},
			want:     Decision{Verb: Move, Reason: input.Reloaded, Delivered: true},
		},
	}
}

func (tc decideCase) input() Input {
	intent := auto()
	if tc.intent != nil {
		tc.intent(&intent)
	}
	in := Input{
		Intent: intent, Findings: tc.findings, ReadsByItself: tc.cronjob,
		PodsAllowed: tc.pods, NoTemplate: tc.problem,
		Entry: record.Entry{PendingSince: tc.pending}, MaxDelay: time.Minute, Now: now,
	}
	if tc.known {
		in.Entry.Inputs = map[input.ID]record.Given{app: {Version: v1}}
	}
	return in
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, tc := range decideCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Decide(tc.input())
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Decision{}, "Message", "Moves")); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			for _, text := range tc.says {
				if !strings.Contains(got.Message, text) {
					t.Errorf("%s: the message %q does not say %q", tc.reason, got.Message, text)
				}
			}
			wantMoves := withStanding(tc.findings, input.Due)
			if tc.want.Reason == input.InvalidAnnotation {
				wantMoves = nil
			}
			if diff := cmp.Diff(wantMoves, got.Moves); diff != "" {
				t.Errorf("%s: what is due (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNoReasonIsUntested fails when somebody adds a reason without a case.
func TestNoReasonIsUntested(t *testing.T) {
	t.Parallel()
	tested := map[input.Reason]bool{
		input.ReloadFailed:   true, // TestFailureEvent: an error is no decision
		input.Evicted:        true, // TestNextEviction: the end of a series
		input.NotRefreshable: true, // TestEventsFor
		input.SourceUnknown:  true, // TestWarnings
	}
	for _, tc := range decideCases() {
		tested[tc.want.Reason] = true
		for _, f := range tc.findings {
			tested[f.Reason] = true // the reasons of inputs are decided in package configs
		}
	}
	ofInputs := []input.Reason{input.NewBasis, input.Arrived, input.Missing, input.DeliveredByRollout, input.DeliveredBefore}
	for _, r := range ofInputs {
		d := Decide(decideCase{findings: []input.Finding{recorded(app, r)}}.input())
		if d.Verb != Remember || d.Reason != r {
			t.Errorf("an input with the reason %s gives %s %s, want it remembered for that reason", r, d.Verb, d.Reason)
		}
		tested[r] = true
	}
	for _, e := range input.FollowExplanations() {
		if !tested[e.Reason] {
			t.Errorf("no case of TestDecide gives %s", e.Reason)
		}
	}
}

// TestSameSituationSameWords: people are told once, which depends on it.
func TestSameSituationSameWords(t *testing.T) {
	t.Parallel()
	for name, tc := range decideCases() {
		earlier := tc.input()
		later := tc.input()
		later.Now = later.Now.Add(time.Millisecond)
		if a, b := Decide(earlier).Message, Decide(later).Message; a != b {
			t.Errorf("%s: %q, and a moment later %q", name, a, b)
		}
	}
}
