package run

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// Notifier notifies the targets of the file that the variable LOCKSTEP_NOTIFY_FILE names, or nobody.
// It is for drop-ins, whose flags are those of the original.
func (e Environment) Notifier(log logr.Logger, metrics prometheus.Registerer) *notify.Notifier {
	file, _ := e.Lookup("LOCKSTEP_NOTIFY_FILE")
	return newNotifier(log, notify.Options{File: file, Metrics: metrics, Now: e.Now})
}

// newNotifier is nil without a file.
func newNotifier(log logr.Logger, o notify.Options) *notify.Notifier {
	if o.File == "" {
		return nil
	}
	o.Report = func(err error) { log.Error(err, "cannot deliver notifications") }
	return notify.New(o)
}

// addNotify notifies targets beside the events. Every replica reads the targets, so a new leader
// knows them.
func (p *parts) addNotify(mgr ctrl.Manager, events rollouts.Announcer) (rollouts.Announcer, error) {
	p.notifier = newNotifier(p.log, notify.Options{
		File: p.options.NotifyFile, Namespace: p.annotations, Metrics: p.options.Server.Metrics, Now: p.options.Now,
	})
	return announce.Several{events, p.notifier}, mgr.Add(OnEveryReplica(func(ctx context.Context) error {
		p.notifier.Run(ctx)
		return nil
	}))
}

// annotations are those of a namespace, as far as it is known.
func (p *parts) annotations(namespace string) map[string]string {
	if n, known := p.cache.Namespace(namespace); known {
		return n.Annotations
	}
	return nil
}

// notifyProblem says what is wrong with the notification target that a namespace chooses, empty
// when nothing is.
func (p *parts) notifyProblem(namespace, target string) string {
	if p.notifier == nil {
		return "this controller doesn't have notification targets; start it with --notify-file"
	}
	return p.notifier.Problem(namespace, target)
}
