package spread_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	patience := spread.Patience{Settle: 10 * time.Second, Timeout: 10 * time.Minute, PauseGrace: 5 * time.Minute}
	ours := spread.Turn{Template: "ours", Healthy: true}
	freed := spread.Turn{Template: "ours", Freed: true}
	at := func(state health.State, since, progressed time.Duration) spread.Progress {
		return spread.Progress{Template: "ours", HasPods: true, Health: state, StateSince: now.Add(-since), ProgressedAt: now.Add(-progressed), Now: now}
	}
	with := func(p spread.Progress, change func(*spread.Progress)) spread.Progress {
		change(&p)
		return p
	}
	long := time.Hour
	for name, tc := range map[string]struct {
		reason  string
		turn    spread.Turn
		now     spread.Progress
		want    spread.End
		recheck time.Duration
	}{
		"Begun":           {"pods are being replaced", ours, at(health.Progressing, 1, time.Minute), spread.Open, 9*time.Minute + 30*time.Second},
		"Progresses":      {"an hour of progress is no reason to give up", ours, at(health.Progressing, long, time.Minute), spread.Open, 9*time.Minute + 30*time.Second},
		"Stuck":           {"no progress for the timeout", ours, at(health.Progressing, long, 10*time.Minute+30*time.Second), spread.Freed, 0},
		"BeforeTheReport": {"the Deployment controller gives up after the same time, and reports it a little later", ours, at(health.Progressing, long, 10*time.Minute), spread.Open, 30 * time.Second},
		"StillStuck":      {"its place stays given away, whatever it does", freed, at(health.Progressing, 1, time.Minute), spread.Freed, 9*time.Minute + 30*time.Second},
		"Done":            {"available, but not for long enough", ours, at(health.Done, 4*time.Second, 0), spread.Open, 6 * time.Second},
		"Settled":         {"available for the settle time", ours, at(health.Done, 10*time.Second, 0), spread.Passed, 0},
		"DoneLate":        {"a completed rollout settles, however long it took", ours, at(health.Done, 4*time.Second, long), spread.Open, 6 * time.Second},
		"FreedDone":       {"it has no place while it settles", freed, at(health.Done, 4*time.Second, 0), spread.Freed, 6 * time.Second},
		"FreedSettled":    {"it is healthy, though late", freed, at(health.Done, 10*time.Second, 0), spread.Passed, 0},
		"Failed":          {"its controller gave up", ours, at(health.Failed, 1, 0), spread.Failing, 0},
		"FreedFailed":     {"a failure counts without a place", freed, at(health.Failed, 1, 0), spread.Failing, 0},
		"Paused":          {"a canary waits for a user", ours, at(health.Paused, 4*time.Minute, long), spread.Open, time.Minute},
		"PausedLong":      {"no user comes", ours, at(health.Paused, 5*time.Minute, 0), spread.Freed, 0},
		"Unknown":         {"nothing is known yet", ours, at(health.Unknown, long, time.Minute), spread.Open, 9*time.Minute + 30*time.Second},
		"UnknownLong":     {"it never reports", ours, at(health.Unknown, long, 11*time.Minute), spread.Over, 0},
		"OtherTemplate":   {"another writer, or an undo", ours, with(at(health.Done, long, long), func(p *spread.Progress) { p.Template = "theirs" }), spread.Over, 0},
		"OtherFailed":     {"another writer's failure isn't ours", ours, with(at(health.Failed, 1, 0), func(p *spread.Progress) { p.Template = "theirs" }), spread.Over, 0},
		"NoPods":          {"scaled to zero proves nothing", ours, with(at(health.Done, long, long), func(p *spread.Progress) { p.HasPods = false }), spread.Over, 0},
		"ByHand":          {"a user replaces the rest", ours, at(health.ByHand, 1, 0), spread.Over, 0},
		"NeverProgressed": {"without a time, the wait begins now", ours, with(at(health.Progressing, 1, 0), func(p *spread.Progress) { p.ProgressedAt = time.Time{} }), spread.Open, 10*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, recheck := tc.turn.Judge(tc.now, patience)
			if end != tc.want || recheck != tc.recheck {
				t.Errorf("%d, check again in %s; want %d, %s: %s", end, recheck, tc.want, tc.recheck, tc.reason)
			}
		})
	}
	if end, _ := ours.Judge(at(health.Done, 0, 0), spread.Patience{}); end != spread.Passed {
		t.Errorf("%d without a settle time, want %d", end, spread.Passed)
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	const a, b = "Deployment.apps/shop/a", "Deployment.apps/shop/b"
	for name, tc := range map[string]struct {
		reason    string
		failed    []string
		threshold int
		want      string
	}{
		"Nobody": {"it failed nowhere", nil, 1, ""},
		"One":    {"one failure is enough", []string{a}, 1, "failed on deployment/a in namespace shop"},
		"Below":  {"the threshold isn't reached", []string{a, b}, 3, ""},
		"Two":    {"the threshold is reached", []string{b, a}, 2, "failed on deployment/a in namespace shop and 1 more"},
		"Never":  {"stops are switched off", []string{a, b}, 0, ""},
	} {
		if got := spread.Stopped(tc.failed, tc.threshold); got != tc.want {
			t.Errorf("%s: %q, want %q: %s", name, got, tc.want, tc.reason)
		}
	}
}
