package mirror

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// longestOutage bounds the pauses of the reflector, which are up to twice as long by
	// jitter. The library's own are of a minute: after an outage of some seconds nothing
	// that happens would be seen for so long.
	longestOutage = 5 * time.Second
	// afterRefusal is the pause after an answer that will be the same for long: a permission
	// is missing, or the kind is not installed. It comes with the third in a row.
	afterRefusal = 30 * time.Second
	patientFrom  = 3
)

func afterOutage() *wait.Backoff {
	return &wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 8, Cap: longestOutage}
}

// restAfter waits after a refusal that repeats.
func (m *Mirror[T]) restAfter(ctx context.Context, err error) {
	if s := (Sync{Err: err}); !s.Forbidden() && !s.NotInstalled() {
		m.refusals.Store(0)
		return
	}
	if m.refusals.Add(1) < patientFrom {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(afterRefusal):
	}
}
