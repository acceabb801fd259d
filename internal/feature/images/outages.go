package images

import (
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

const (
	// sameOutage is how long the log doesn't repeat a state of a registry that keeps changing.
	sameOutage = 30 * time.Minute
	// maxOutages limits how many registries are remembered: annotations name them.
	maxOutages = 1000
)

// isOutage reports whether a failure is the registry's, whatever image was queried. Other failures
// are answers about one image.
func isOutage(k registry.FailureKind) bool {
	return k == registry.Unreachable || k == registry.Broken || k == registry.Limited
}

// outages log when a registry can't be queried and when it answers again, once for each registry
// and state. A metric, an event on each workload and the record show it too, but not every program
// may write events.
type outages struct {
	log logr.Logger
	now func() time.Time

	mu    sync.Mutex
	hosts map[string]*outage
}

// outage is what was logged about a registry.
type outage struct {
	state  registry.FailureKind // empty while it answers
	logged map[registry.FailureKind]time.Time
}

// Checked counts each check of an image and logs outages of registries.
func Checked(m *Metrics, log logr.Logger, now func() time.Time) func(host string, err error) {
	o := newOutages(log, now)
	return func(host string, err error) {
		m.Checked(host, err)
		o.checked(host, err)
	}
}

// newOutages makes a log of outages.
func newOutages(log logr.Logger, now func() time.Time) *outages {
	return &outages{log: log, now: now, hosts: map[string]*outage{}}
}

// checked is called after each check of an image.
func (o *outages) checked(host string, err error) {
	state := registry.KindOf(err)
	if !isOutage(state) {
		state = "" // an answer
	}
	if !o.isNews(host, state) {
		return
	}
	if state == "" {
		o.log.Info("a registry answers again", "registry", host)
		return
	}
	o.log.Error(err, "a registry cannot be asked; images there stay as they are", "registry", host, "reason", string(input.Unresolved), "result", string(state))
}

// isNews remembers the state of a registry and reports whether to log it.
func (o *outages) isNews(host string, state registry.FailureKind) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.hosts[host]
	switch {
	case h == nil && state == "":
		return false
	case h == nil:
		if len(o.hosts) >= maxOutages {
			clear(o.hosts) // Some states are logged twice then.
		}
		h = &outage{logged: map[registry.FailureKind]time.Time{}}
		o.hosts[host] = h
	case h.state == state, state == registry.Limited && h.state != "":
		return false // It is left alone because of the failure before.
	}
	now := o.now()
	if last, known := h.logged[state]; known && now.Sub(last) < sameOutage {
		return false // The state that was logged last stays, so this one is logged if it lasts.
	}
	h.state, h.logged[state] = state, now
	return true
}
