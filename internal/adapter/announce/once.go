package announce

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Once writes one event and waits for it, for a command that a user started. It is in the core
// API group, in which more roles allow events.
func Once(ctx context.Context, c client.Writer, e Event, now time.Time) error {
	a := &Announcer{reporter: e.By, host: "command"}
	if err := c.Create(ctx, inCore(a.written(e, now))); err != nil {
		return fmt.Errorf("write an event on %s: %w", e.About.Name, err)
	}
	return nil
}
