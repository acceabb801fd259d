package run

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
)

// addRevisions adds the watches to those of the cache, and the loop, on the leader.
func (p *parts) addRevisions(mgr ctrl.Manager) (forget forgetNamespaces, err error) {
	if !p.options.Revisions.Enabled {
		return func(func(string) bool) {}, nil
	}
	p.ownership = ownership.New(p.cache, ownership.Options{
		Now:    p.options.Now,
		Report: func(s mirror.Sync) { ReportStatus(p.log, s) },
		// A namespace's observe setting and the kill switch must be known before anything is written.
		Ready:   func() bool { return p.cache.Defaults() && p.stops.Status().Synced },
		Secrets: p.options.Revisions.Secrets,
	})
	if err := p.addAttachPermissions(mgr); err != nil {
		return nil, err
	}
	o := p.options.Revisions.Options
	o.Observe = p.options.observes()
	loop := revisions.New(o, revisions.Dependencies{
		Cluster: p.ownership,
		Owners: func(ctx context.Context, object ownership.ObjectKey, uid string, owners []metav1.OwnerReference) error {
			return ownership.AddOwners(ctx, p.client, object, uid, owners)
		},
		Observes:  p.observes,
		Stopped:   p.stops.For,
		Announcer: p.announcer,
		Metrics:   p.options.Server.Metrics,
		Log:       p.log, Now: p.options.Now,
	})
	return loop.ForgetNamespaces, loop.Setup(mgr)
}

// addAttachPermissions checks the permissions for attaching once the first revisioned object
// exists: users without such objects must not see reports about missing permissions.
func (p *parts) addAttachPermissions(mgr ctrl.Manager) error {
	if p.options.observes() {
		return nil
	}
	p.attachPermissions = access.NewPermissions(p.client, p.options.attachPermissions())
	p.attachPermissions.Report = missingLog(p.log, p.cache.Status)
	return mgr.Add(OnEveryReplica(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-p.ownership.Needed():
			return p.attachPermissions.Run(ctx)
		}
	}))
}

// missingToAttach are the missing permissions for attaching revisioned objects.
func (p *parts) missingToAttach() []access.Permission {
	if p.attachPermissions == nil {
		return nil
	}
	missing, _ := p.attachPermissions.Missing()
	return missing
}

// observes reports whether a namespace is only observed. A namespace that the labels no longer
// select isn't written to, whatever its settings.
func (p *parts) observes(namespace string) bool {
	ns, known := p.cache.Namespace(namespace)
	if !known {
		return p.cache.ChoosesNamespaces()
	}
	return settings.ForWorkload(nil, ns.Annotations, settings.Defaults{}).Observe
}

// ownershipStatus is how well revisions can be watched; empty when that is disabled.
func (p *parts) ownershipStatus() []mirror.Sync {
	if p.ownership == nil {
		return nil
	}
	return p.ownership.Status()
}
