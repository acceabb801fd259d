package mirror

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// longestOutage limits the reflector's pauses, which jitter can double. The library's
	// default is a minute: after an outage of a few seconds, all changes would go unseen for
	// that long.
	longestOutage = 5 * time.Second
	// afterRefusal is the pause after a response that will stay the same for long: a missing
	// permission, or a kind that isn't installed. It applies from the third one in a row.
	afterRefusal = 30 * time.Second
	patientFrom  = 3
)

func afterOutage() *wait.Backoff {
	return &wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 8, Cap: longestOutage}
}

// restAfter waits after repeated refusals.
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
