package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/killswitch"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// switchPoll is how often the loop checks whether the kill switch has been read.
const switchPoll = 50 * time.Millisecond

func (p *parts) newSwitch() *killswitch.Switch {
	return killswitch.New(killswitch.Options{
		Namespace: p.options.Own.Namespace, Now: p.options.Now,
		Workloads: p.cache.EachWorkload,
		Report:    func(s mirror.Sync) { ReportStatus(p.log, s) },
	})
}

// addSwitch adds the metric of the kill switch, and what the leader reports about it.
func (p *parts) addSwitch(mgr ctrl.Manager) error {
	if p.options.IsIdle() {
		return nil
	}
	p.options.Server.Metrics.MustRegister(p.stops)
	return mgr.Add(manager.RunnableFunc(p.reportStops))
}

// awaitSwitch waits until the kill switch has been read: it counts from the first decision on. A
// missing permission isn't an answer: what an operator stopped would go on.
// It is false when the context ended before.
func (p *parts) awaitSwitch(ctx context.Context) bool {
	known := func(context.Context) (bool, error) { return p.stops.Status().Synced, nil }
	return wait.PollUntilContextCancel(ctx, switchPoll, true, known) == nil
}

// reportStops logs each change of the kill switch and confirms it with an event, for which
// "lockstep stop" waits. Only the leader does, since only it makes changes.
func (p *parts) reportStops(ctx context.Context) error {
	if !p.awaitSwitch(ctx) {
		return nil
	}
	var reported killswitch.State
	for {
		if now := p.stops.State(); !now.SameAs(&reported) {
			p.reportStop(now, reported.Object)
			reported = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.stops.Changes():
		}
	}
}

// reportStop reports the kill switch. When its ConfigMap was deleted, that is about the one before.
func (p *parts) reportStop(now killswitch.State, before metav1.ObjectMeta) {
	said := inWords(now.Stop)
	p.log.Info("the kill switch was changed", "configMap", settings.StopName, "state", said)
	object := now.Object
	if object.UID == "" {
		object = before
	}
	if object.UID == "" {
		return // nothing is stopped, and nothing was
	}
	p.announcer.Announce(announce.Event{
		About: &corev1.ObjectReference{
			APIVersion: "v1", Kind: string(input.KindConfigMap), Namespace: object.Namespace, Name: object.Name,
			UID: object.UID, ResourceVersion: object.ResourceVersion,
		},
		Reason: string(input.Stopped), Action: "stop", Note: said,
	})
}

// inWords describes which changes are stopped.
func inWords(s settings.Stop) string {
	switch {
	case s.All != nil:
		return "every automatic change is stopped" + because(*s.All)
	case len(s.Namespaces) == 0:
		return "nothing is stopped"
	}
	parts := make([]string, 0, len(s.Namespaces))
	for _, namespace := range slices.Sorted(maps.Keys(s.Namespaces)) {
		parts = append(parts, fmt.Sprintf("automatic changes in namespace %s are stopped%s", namespace, because(s.Namespaces[namespace])))
	}
	return strings.Join(parts, "; ")
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
