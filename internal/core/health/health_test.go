package health_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/health"
)

func counted(wanted, existing, updated, available int) health.Status {
	return health.Status{Observed: true, Counted: true, Counts: health.Counts{Wanted: wanted, Existing: existing, Updated: updated, Available: available}}
}

func with(s health.Status, change func(*health.Status)) health.Status {
	change(&s)
	return s
}

func TestOf(t *testing.T) {
	t.Parallel()
	const deadline = 10 * time.Minute
	onDelete := func(s *health.Status) { s.OnDelete = true }
	partition := func(n int) func(*health.Status) { return func(s *health.Status) { s.Partition = n } }
	slow := func(s *health.Status) { s.Deadline = deadline }
	for name, tc := range map[string]struct {
		status  health.Status
		stalled time.Duration
		want    health.State
	}{
		"Done":                 {counted(3, 3, 3, 3), 0, health.Done},
		"ZeroReplicas":         {counted(0, 0, 0, 0), 0, health.Done},
		"OldPodsLeft":          {counted(3, 4, 3, 3), 0, health.Progressing},
		"NotAvailable":         {counted(3, 3, 3, 2), 0, health.Progressing},
		"NotAllUpdated":        {counted(3, 3, 1, 3), 0, health.Progressing},
		"NotCreated":           {counted(3, 0, 0, 0), 0, health.Progressing},
		"ScaledDown":           {counted(1, 1, 1, 1), 0, health.Done},
		"NotObserved":          {with(counted(3, 3, 3, 3), func(s *health.Status) { s.Observed = false }), 0, health.Progressing},
		"Paused":               {with(counted(3, 4, 1, 3), func(s *health.Status) { s.Paused = true }), 0, health.Paused},
		"GivenUp":              {with(counted(3, 4, 1, 3), func(s *health.Status) { s.GivenUp = "ProgressDeadlineExceeded" }), 0, health.Failed},
		"NeverGivesUp":         {counted(3, 4, 1, 3), 24 * time.Hour, health.Progressing},
		"WithinOurDeadline":    {with(counted(3, 3, 1, 3), slow), deadline - 1, health.Progressing},
		"BeyondOurDeadline":    {with(counted(3, 3, 1, 3), slow), deadline, health.Failed},
		"ScaledUpLater":        {with(counted(5, 3, 3, 3), slow), deadline, health.Failed},
		"NoPodsWanted":         {with(counted(0, 0, 0, 0), slow), 24 * time.Hour, health.Done},
		"PausedForDays":        {with(with(counted(3, 3, 1, 3), slow), func(s *health.Status) { s.Paused = true }), 24 * time.Hour, health.Paused},
		"UnobservedForDays":    {with(with(counted(3, 3, 3, 3), slow), func(s *health.Status) { s.Observed = false }), 24 * time.Hour, health.Progressing},
		"DoneInTheEnd":         {with(counted(3, 3, 3, 3), slow), 2 * deadline, health.Done},
		"OnDelete":             {with(counted(3, 3, 1, 3), onDelete), 0, health.ByHand},
		"OnDeleteForDays":      {with(with(counted(3, 3, 1, 3), onDelete), slow), 24 * time.Hour, health.ByHand},
		"OnDeleteDone":         {with(counted(3, 3, 3, 3), onDelete), 0, health.Done},
		"OnDeleteNotReady":     {with(counted(3, 3, 3, 2), onDelete), 0, health.Progressing},
		"PartitionReached":     {with(counted(5, 5, 3, 5), partition(2)), 0, health.ByHand},
		"PartitionNotYet":      {with(counted(5, 5, 1, 5), partition(2)), 0, health.Progressing},
		"PartitionBeyondAll":   {with(counted(3, 3, 0, 3), partition(9)), 0, health.ByHand},
		"PartitionWithoutPods": {with(counted(0, 0, 0, 0), partition(2)), 0, health.Done},
		"Healthy":              {health.Status{Observed: true, Phase: "Healthy"}, 0, health.Done},
		"CanaryPaused":         {health.Status{Observed: true, Phase: "Paused"}, 0, health.Paused},
		"Degraded":             {health.Status{Observed: true, Phase: "Degraded"}, 0, health.Failed},
		"PhaseOverCounts":      {with(counted(3, 3, 3, 3), func(s *health.Status) { s.Phase = "Progressing" }), 0, health.Progressing},
		"Aborted":              {health.Status{Observed: true, Phase: "Healthy", Aborted: true}, 0, health.Failed},
		"Invalid":              {health.Status{Phase: "Healthy", Invalid: true}, 0, health.Failed},
		"UnknownPhase":         {health.Status{Observed: true, Phase: "Contemplating"}, 0, health.Unknown},
		"Ready":                {health.Status{Observed: true, Ready: health.True}, 0, health.Done},
		"NotReady":             {health.Status{Observed: true, Ready: health.False}, 0, health.Progressing},
		"Stalled":              {health.Status{Observed: true, Ready: health.True, Stalled: health.True}, 0, health.Failed},
		"NotStalled":           {health.Status{Observed: true, Stalled: health.False}, 0, health.Unknown},
		"Silent":               {health.Status{Observed: true}, 0, health.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := health.Of(tc.status, tc.stalled)
			if got.State != tc.want {
				t.Errorf("%+v is %q, want %q", tc.status, got.State, tc.want)
			}
			if got.Message == "" {
				t.Error("it has nothing to say")
			}
		})
	}
}

// TestLeft: the check after that time finds a failed rollout, and there is none after a failure.
func TestLeft(t *testing.T) {
	t.Parallel()
	const deadline = 10 * time.Minute
	for name, tc := range map[string]struct {
		reason                  string
		deadline, stalled, want time.Duration
	}{
		"Begins":     {"nothing has happened yet", deadline, 0, deadline},
		"Goes":       {"some of it is over", deadline, 4 * time.Minute, 6 * time.Minute},
		"Ends":       {"it counts as failed", deadline, deadline, 0},
		"Passed":     {"it failed a while ago, and time doesn't change that", deadline, 24 * time.Hour, 0},
		"SkewedAway": {"the API server's clock is ahead", deadline, -time.Second, deadline + time.Second},
		"None":       {"its controller gives up by itself", 0, 24 * time.Hour, 0},
		"NoneSkewed": {"its controller gives up by itself, and its clock is ahead", 0, -time.Second, 0},
	} {
		s := with(counted(3, 4, 1, 3), func(s *health.Status) { s.Deadline = tc.deadline })
		if got := s.Left(tc.stalled); got != tc.want {
			t.Errorf("%s: %s, want %s: %s", name, got, tc.want, tc.reason)
		}
		if fails := health.Of(s, tc.stalled+tc.want).State == health.Failed; fails != (tc.deadline > 0) {
			t.Errorf("%s: the check then finds a failure: %t: %s", name, fails, tc.reason)
		}
	}
}

func TestWhichPodsMayRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status         health.Status
		older, updated bool
	}{
		"Done":        {counted(3, 3, 3, 0), false, true},
		"OneOlder":    {counted(3, 3, 2, 3), true, true},
		"Begun":       {counted(3, 3, 0, 3), true, false},
		"Zero":        {counted(0, 0, 0, 0), false, false},
		"NotObserved": {health.Status{Counted: true}, true, true},
		"NotCounted":  {health.Status{Observed: true, Ready: health.True}, true, true},
	} {
		if older, updated := tc.status.HasOlderPods(), tc.status.HasUpdatedPods(); older != tc.older || updated != tc.updated {
			t.Errorf("%s: older %t (want %t), updated %t (want %t)", name, older, tc.older, updated, tc.updated)
		}
	}
}
