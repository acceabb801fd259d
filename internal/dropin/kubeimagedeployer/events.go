package kubeimagedeployer

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/crowd"
)

// events writes events where the role allows it. The original's role doesn't: then the log has the
// text, and the last events wait for the permission.
type events struct {
	*announce.Announcer

	permissions *access.Permissions
	granted     chan struct{}

	mu      sync.Mutex
	allowed bool
	waiting *crowd.Crowd[*announce.Event] // by namespace
}

// mostWaiting limits the events that wait for the permission. Of a role that never allows them, these
// are kept.
const mostWaiting = 256

func newEvents(mgr ctrl.Manager, p *parts) (*events, error) {
	announcer, err := announce.NewAnnouncer(mgr.GetConfig(), announce.Reporter, p.metrics)
	if err != nil {
		return nil, err
	}
	needed := access.Permission{Verb: "create", Resource: schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, Namespace: p.options.Namespace}
	e := &events{Announcer: announcer, permissions: access.NewPermissions(p.client, []access.Permission{needed}), granted: make(chan struct{}), waiting: crowd.New[*announce.Event](mostWaiting)}
	e.permissions.Report = e.report(p.log)
	return e, nil
}

// report logs once that no events are written, and starts writing them when they are allowed.
func (e *events) report(log logr.Logger) func(missing []access.Permission) {
	var refused, allowed sync.Once
	return func(missing []access.Permission) {
		if len(missing) == 0 {
			allowed.Do(e.begin)
			return
		}
		refused.Do(func() {
			log.Info("cannot write events, because the role does not allow it; this log contains their text", "permission", missing[0].String())
		})
	}
}

// begin hands over the events that waited.
func (e *events) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.allowed = true
	for event, ok := e.waiting.Next(); ok; event, ok = e.waiting.Next() {
		e.Announcer.Announce(*event)
	}
	close(e.granted)
}

// Announce implements rollouts.Announcer. Until there is the permission, events wait.
func (e *events) Announce(event announce.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.allowed {
		e.Announcer.Announce(event)
		return
	}
	e.waiting.Add(event.About.Namespace, &event)
}

// Run checks the permission, and writes events from when it is granted.
func (e *events) Run(ctx context.Context) {
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() {
		select {
		case <-ctx.Done():
		case <-e.granted:
			_ = e.Announcer.Run(ctx)
		}
	})
	_ = e.permissions.Run(ctx)
}
