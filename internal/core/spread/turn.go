package spread

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/health"
)

// Turn is a rollout of ours on trial: it delivered changes, and the workload still has the
// pod template that it made. While a change is pending, only Healthy is known.
type Turn struct {
	// Template is the digest of that pod template, empty before the patch.
	Template string
	// Healthy is true when the workload was healthy before, so a failure is the fault of
	// the change.
	Healthy bool
	// Freed is true when another workload may have its place. A later failure still counts,
	// and so does a later proof.
	Freed bool
}

// Progress is how a workload stands now.
type Progress struct {
	Template string
	Health   health.State
	// HasPods is true when the workload asks for at least one pod.
	HasPods bool
	// StateSince is since when Health is the same, and ProgressedAt when the rollout last
	// came further.
	StateSince, ProgressedAt time.Time
	Now                      time.Time
}

// IsHealthy reports whether every pod has been updated and available for the settle time.
func (p Progress) IsHealthy(settle time.Duration) bool {
	return p.HasPods && p.Health == health.Done && p.since(p.StateSince) >= settle
}

func (p Progress) since(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return p.Now.Sub(at)
}

// Patience is how long a turn may take.
type Patience struct {
	// Settle is how long a completed rollout has to stay available.
	Settle time.Duration
	// Timeout frees the place of a rollout that makes no progress, and PauseGrace that of
	// one which waits for a user.
	Timeout, PauseGrace time.Duration
}

// reportShare is the part of the timeout by which a place is freed later. A Deployment's own
// deadline is as long as the default timeout, and its controller reports the failure up to
// seconds after that. Freed before, the place would go to one more workload.
const reportShare = 20

// End is how a turn stands.
type End int

// Ends of a turn.
const (
	// Open: the end isn't known yet, and the turn keeps its place.
	Open End = iota
	// Passed: the workload is healthy with the change.
	Passed
	// Failing: the rollout failed. It may still recover.
	Failing
	// Freed: the end isn't known yet, and the turn gives up its place. It proves nothing.
	Freed
	// Over: the end will never be known.
	Over
)

// Judge returns how the turn stands, and when to check again if no event comes before.
func (t Turn) Judge(p Progress, l Patience) (end End, recheck time.Duration) {
	switch {
	case p.Template != t.Template, !p.HasPods, p.Health == health.ByHand:
		return Over, 0
	case p.Health == health.Failed:
		return Failing, 0
	case p.IsHealthy(l.Settle):
		return Passed, 0
	}
	late, left := Freed, l.Timeout+l.Timeout/reportShare-p.since(p.ProgressedAt)
	switch p.Health {
	case health.Done:
		left = l.Settle - p.since(p.StateSince)
	case health.Paused:
		left = l.PauseGrace - p.since(p.StateSince)
	case health.Unknown:
		late = Over // such a workload never reports it
	case health.Progressing, health.ByHand, health.Failed:
	}
	switch {
	case left <= 0:
		return late, 0
	case t.Freed:
		return Freed, left
	}
	return Open, left
}
