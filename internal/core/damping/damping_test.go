package damping_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/damping"
)

var (
	usual = damping.Policy{First: 30 * time.Second, Most: 15 * time.Minute}
	last  = time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
)

func TestUntil(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		policy damping.Policy
		level  int
		want   time.Duration // after the last one, 0 for at once
	}{
		"Never":   {"nothing happened yet", usual, 0, 0},
		"Fourth":  {"the fifth is free", usual, 4, 0},
		"Fifth":   {"the first pause", usual, 5, 30 * time.Second},
		"Sixth":   {"twice as long", usual, 6, time.Minute},
		"Ninth":   {"16 times as long", usual, 9, 8 * time.Minute},
		"Tenth":   {"bounded", usual, 10, 15 * time.Minute},
		"Forever": {"bounded, whatever happened", usual, math.MaxInt, 15 * time.Minute},
		"Off":     {"no pauses", damping.Policy{}, 100, 0},
		"Short":   {"the bound is shorter than the first pause", damping.Policy{First: time.Minute, Most: time.Second}, 6, time.Second},
		"Odd":     {"a record that another writer changed", usual, -3, 0},
	} {
		want := time.Time{}
		if tc.want > 0 {
			want = last.Add(tc.want)
		}
		s := damping.State{Level: tc.level, Last: last}
		if got := tc.policy.Until(s); !got.Equal(want) || tc.policy.Delays(s) != (tc.want > 0) {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, want)
		}
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		policy damping.Policy
		level  int
		pause  time.Duration
		want   int
	}{
		"First":       {"a series begins", usual, 0, 0, 1},
		"Next":        {"and goes on", usual, 3, 4 * time.Minute, 4},
		"QuietEarly":  {"five quiet minutes end a series without pauses", usual, 4, 5 * time.Minute, 1},
		"NotQuietYet": {"a pause of eight minutes doesn't end one with pauses of eight minutes", usual, 9, 31 * time.Minute, 10},
		"Quiet":       {"four times as long does", usual, 9, 32 * time.Minute, 1},
		"LongQuiet":   {"an hour always does", usual, 1000, time.Hour, 1},
		"ClockBack":   {"a clock that goes back ends nothing", usual, 9, -time.Hour, 10},
		"Off":         {"nothing is remembered", damping.Policy{}, 3, 0, 0},
	} {
		now := last.Add(tc.pause)
		want := damping.State{Level: tc.want, Last: now}
		if tc.want == 0 {
			want = damping.State{}
		}
		if got := tc.policy.After(damping.State{Level: tc.level, Last: last}, now); got != want {
			t.Errorf("%s: %s: %+v, want %+v", name, tc.reason, got, want)
		}
		if over := tc.policy.IsOver(damping.State{Level: tc.level, Last: last}, now); over != (tc.want <= 1) {
			t.Errorf("%s: %s: over %t", name, tc.reason, over)
		}
	}
}

// begun are the times at which something that keeps coming for an hour begins.
func begun(p damping.Policy, every time.Duration) (at []time.Duration) {
	var s damping.State
	for now := time.Duration(0); now < time.Hour; now += every {
		if until := p.Until(s); until.After(last.Add(now)) {
			continue
		}
		s = p.After(s, last.Add(now))
		at = append(at, now)
	}
	return at
}

// TestForAnHour: whatever keeps changing for an hour is delivered a few times, and at the end too.
func TestForAnHour(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Second, 2 * time.Second, 7 * time.Second, 10 * time.Second, 61 * time.Second, 299 * time.Second} {
		if at := begun(usual, every); len(at) > 13 || at[len(at)-1] < 40*time.Minute {
			t.Errorf("every %s: %d times, at %v", every, len(at), at)
		}
	}
	if at := begun(usual, 5*time.Minute); len(at) != 12 {
		t.Errorf("every five minutes: %d times, want each of them", len(at))
	}
	var want []time.Duration
	for _, seconds := range []int{0, 10, 20, 30, 40, 70, 130, 250, 490, 970, 1870, 2770} {
		want = append(want, time.Duration(seconds)*time.Second)
	}
	if diff := cmp.Diff(want, begun(usual, 10*time.Second)); diff != "" {
		t.Errorf("every ten seconds (-want +got):\n%s", diff)
	}
}
