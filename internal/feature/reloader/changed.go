package reloader

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// changed is called with each difference between two copies of an object.
func (r *Reloader) changed(old, now *source) {
	if c, namespace, ok := r.changeOf(old, now); ok {
		r.note(namespace, c)
	}
}

// mostUnled bounds the changes that wait in a process that doesn't work. It delivers them only if
// nobody has left a record.
const mostUnled = 10000

// note makes a change wait. A process that doesn't work yet may have to deliver it later.
func (r *Reloader) note(namespace string, c *change) {
	r.Metrics.received(string(c.event), c.Type)
	if r.Webhook != nil {
		if r.leads.Load() {
			r.Webhook()
		}
		return
	}
	if !r.leads.Load() && r.pending.size() >= mostUnled {
		return
	}
	r.pending.put(namespace, c)
	r.Metrics.added()
	r.Metrics.queued(r.pending.size())
	r.wake(inNamespace(namespace))
}

// changeOf is the change that a difference amounts to, if it is one that is acted on.
func (r *Reloader) changeOf(old, now *source) (c *change, namespace string, ok bool) {
	s := now
	if s == nil {
		s = old
	}
	c = s.changeAt(r.Now())
	if s.own || !r.chosen.has(s.namespace) {
		r.Metrics.skipped(notSelected)
		return c, "", false
	}
	switch {
	case s.Type == stakater.SecretProviderClass:
		ok = r.isRotation(old, now)
		if old != nil {
			c.before = old.hash
		}
	case now == nil:
		c.event, c.hash = deleted, stakater.DeletedHash
		if !r.OnDelete { // If it is created again, that is a creation, even for the next process.
			r.pending.drop(s.namespace, s.id())
			r.record.forget(s.namespace, s.id())
		}
		ok = r.OnDelete
	case old == nil:
		c.event = added
		ok = now.born && r.OnCreate
	case old.strong == now.strong:
		r.Metrics.skipped(noDataChange)
	default:
		c.before, ok = old.hash, true
		if now.keys >= old.keys {
			// A key was added or has another value, which its writer's managed fields show.
			c.written = now.dataWrittenAt
		}
	}
	return c, s.namespace, ok
}

// changeAt is an update of the source.
func (s *source) changeAt(at time.Time) *change {
	return &change{Source: s.Source, hash: s.hash, strong: s.strong, version: s.version, dataWrittenAt: s.dataWrittenAt, event: updated, first: at, last: at}
}

// isRotation reports whether the status of a pod shows a version of its class that is new. The
// same one reaches pod after pod, and each of them shows it by itself.
func (r *Reloader) isRotation(old, now *source) bool {
	if old == nil || now == nil || now.keys == 0 || old.strong == now.strong {
		return false
	}
	known, _ := r.record.entry(now.namespace, now.id())
	return known.hash != now.hash
}
