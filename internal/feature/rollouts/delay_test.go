package rollouts

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestDelayCountsWhileItCouldBeMoved: a hold and a bar stop the clock of the maximum
// delay, and their end starts it anew.
func TestDelayCountsWhileItCouldBeMoved(t *testing.T) {
	t.Parallel()
	begun := ago(30 * time.Second)
	cases := map[string]struct {
		reason string
		intent func(*settings.Intent)
		bars   []input.Bar
		entry  time.Time
		want   time.Time
	}{
		"Free":     {"it counts on", func(*settings.Intent) {}, nil, begun, begun},
		"First":    {"it begins", func(*settings.Intent) {}, nil, time.Time{}, now},
		"Future":   {"a clock that was ahead", func(*settings.Intent) {}, nil, now.Add(time.Hour), now},
		"Held":     {"a hold stops it", func(in *settings.Intent) { in.Held = true }, nil, begun, time.Time{}},
		"Barred":   {"so does one on a source", func(*settings.Intent) {}, []input.Bar{{Reason: input.Held}}, begun, time.Time{}},
		"Strategy": {"so does a strategy without permissions", func(in *settings.Intent) { in.Strategy = settings.StrategyEvict }, nil, begun, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := due(app, time.Second)
			f.Bars = tc.bars
			in := Observation{Intent: auto(), Assessment: input.Assessment{Findings: []input.Finding{f}}, Pods: PodState{Off: "off"}, Entry: record.Entry{Pending: record.Pending{PendingSince: ago(time.Minute), DelaySince: tc.entry}}, MaxDelay: time.Hour, Now: now}
			tc.intent(&in.Intent)
			if got := Decide(in); got.Reason != input.QuietWindow || !got.DelaySince.Equal(tc.want) {
				t.Errorf("%s: %s, counted since %s, want %s", tc.reason, got.Reason, got.DelaySince, tc.want)
			}
		})
	}
}

// TestMistakeStopsTheMaximumDelay: nothing could be moved while it was there.
func TestMistakeStopsTheMaximumDelay(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.workload.Annotations[settings.Quiet] = "soon"
	s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Pending: record.Pending{PendingSince: ago(time.Minute), DelaySince: ago(time.Minute)}, Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
	loop := s.loop()
	for range 2 {
		if _, err := loop.Reconcile(t.Context(), s.workload.Key); err != nil {
			t.Fatal(err)
		}
	}
	if !s.entry.DelaySince.IsZero() || s.entry.PendingSince.IsZero() || s.recorded != 1 {
		t.Errorf("recorded %d times, pending since %s, delayed since %s", s.recorded, s.entry.PendingSince, s.entry.DelaySince)
	}
}
