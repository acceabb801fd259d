package run

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// sweepEvery is how often leftovers of deleted namespaces are removed, and sweepChangesEvery those of versions.
const (
	sweepEvery        = 10 * time.Minute
	sweepChangesEvery = time.Minute
)

// forgetNamespaces drops the data of unknown namespaces.
type forgetNamespaces func(known func(namespace string) bool)

// sweep removes deleted namespaces from record and metrics until the context ends. Without
// permission to list namespaces it cannot identify them.
func (p *parts) sweep(ctx context.Context, forget ...forgetNamespaces) {
	ticker, changes := time.NewTicker(sweepEvery), time.NewTicker(sweepChangesEvery)
	defer ticker.Stop()
	defer changes.Stop()
	known := func(namespace string) bool {
		_, ok := p.cache.Namespace(namespace)
		return ok
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes.C:
			p.sweepChanges()
			continue
		case <-ticker.C:
		}
		if !p.cache.KnowsNamespaces() {
			continue
		}
		for _, f := range forget {
			f(known)
		}
		if err := p.records.Sweep(ctx, known); err != nil {
			p.log.Error(err, "cannot remove deleted objects from the record")
		}
	}
}

// announceUnwritable reports an unwritable part of the record, on the ConfigMap itself.
func (p *parts) announceUnwritable(name string, err error) {
	p.announcer.Announce(announce.Event{
		About:   &corev1.ObjectReference{APIVersion: "v1", Kind: string(input.KindConfigMap), Namespace: p.options.Own.Namespace, Name: name},
		Warning: true, Reason: string(input.RecordUnwritable), Action: "write",
		Note: "the versions delivered to its workloads are only in memory until it can be written: " + err.Error(),
	})
}
