package histories_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/histories"
)

// TestFlapForAnHour: two writers fight over one Secret for an hour. Each workload is rolled out
// fewer than 50 times, and gets the last content. A change after a long quiet is delivered as if
// nothing had happened.
func TestFlapForAnHour(t *testing.T) {
	t.Parallel()
	for _, workloads := range []int{1, 60} {
		for _, period := range []time.Duration{2 * time.Second, 7 * time.Second, 61 * time.Second} {
			t.Run(fmt.Sprintf("%dEvery%s", workloads, period), func(t *testing.T) {
				t.Parallel()
				if workloads > 1 && period < time.Minute { // 100,000 checks
					labtest.In(t, labtest.TierRelease)
				}
				synctest.Test(t, func(t *testing.T) { flap(t, workloads, period, 0) })
			})
		}
	}
}

// TestDampingOutlivesRestarts: pauses between rollouts stay as long, however often the controller is killed.
func TestDampingOutlivesRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { flap(t, 1, 7*time.Second, 2*time.Minute) })
}

// flap plays the hour. Unless it is zero, the controller is killed and started again every kills.
func flap(t *testing.T, workloads int, period, kills time.Duration) {
	t.Helper()
	uses, db := map[string][]string{}, histories.Action{Source: histories.Secret, On: "shop"}
	for i := range workloads {
		uses[fmt.Sprintf("shop/web-%02d", i)] = []string{histories.Secret}
	}
	safe := rollouts.SafeOptions().Safety
	f := newFleet(histories.History{Seed: 1, Fleet: histories.Fleet{
		Ramp: safe.Ramp, MaxRolling: safe.MaxRolling, StopAfter: safe.StopAfter, Settle: safe.Settle, Timeout: safe.Timeout, PauseGrace: safe.PauseGrace,
		Damping: safe.Damping, MaxDamping: safe.MaxDamping,
	}}, uses, false, false)
	killed := time.Now()
	for end := time.Now().Add(time.Hour); time.Now().Before(end); f.pass(period) {
		f.set(db, "good")
		if kills > 0 && time.Since(killed) > kills {
			killed = time.Now()
			f.do(histories.Action{Verb: histories.Kill})
			f.do(histories.Action{Verb: histories.Start})
		}
	}
	f.pass(time.Hour)
	counts, shows := map[string]int{}, map[string]string{}
	for _, fact := range f.facts {
		if w := fact.Workload; fact.Lockstep {
			counts[w.Name]++
			shows[w.Name] = w.Shows[histories.Secret]
		}
	}
	for name, count := range counts {
		if count >= 50 || workloads == 1 && count < 5 {
			t.Errorf("%s was rolled out %d times, want fewer than 50, and more than 5 when it is alone", name, count)
		}
		if want := f.contents["shop "+histories.Secret]; shows[name] != want {
			t.Errorf("%s has %q, want %q, an hour after the last change", name, shows[name], want)
		}
	}
	if len(counts) != workloads {
		t.Errorf("%d workloads were rolled out, want %d", len(counts), workloads)
	}

	f.pass(2 * time.Hour)
	f.facts = nil
	f.set(db, "good")
	changed := time.Now()
	f.pass(time.Hour)
	var took []time.Duration
	for _, fact := range f.facts {
		if fact.Lockstep {
			took = append(took, fact.At.Sub(changed))
		}
	}
	if len(took) != workloads || took[0] > quiet+time.Second {
		t.Errorf("%d of %d workloads were rolled out after a long quiet, the first %v later, want about %s", len(took), workloads, took[:min(1, len(took))], quiet)
	}
}
