package images

import (
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

const (
	// sameOutage is the time in which at most mostChanges of a registry's state are logged.
	sameOutage  = 30 * time.Minute
	mostChanges = 6
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
	logged []time.Time          // in the last while
	// cause is the last failure since it answered. It explains why the registry is left alone
	// afterwards.
	cause error
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
	state, cause := o.change(host, err)
	switch {
	case cause != nil:
		o.log.Error(cause, "a registry is unavailable; its images stay as they are", "registry", host, "reason", string(input.Unresolved), "result", string(state))
	case state != "":
		o.log.Info("a registry answers again", "registry", host)
	}
}

// change remembers the state of a registry. It returns the new state and its cause if it has to be
// logged, or only the old state if the registry answers again.
func (o *outages) change(host string, err error) (registry.FailureKind, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	state, h := registry.KindOf(err), o.hosts[host]
	if !isOutage(state) {
		state, err = "", nil // an answer
	}
	if h == nil {
		if state == "" {
			return "", nil
		}
		if len(o.hosts) >= maxOutages {
			clear(o.hosts) // Some states are logged twice then.
		}
		h = &outage{}
		o.hosts[host] = h
	}
	if state == registry.Limited && h.cause != nil {
		err, state = h.cause, registry.KindOf(h.cause) // It is left alone because of the failure before.
	}
	h.cause = err
	now := o.now()
	h.logged = slices.DeleteFunc(h.logged, func(at time.Time) bool { return now.Sub(at) >= sameOutage })
	if h.state == state || len(h.logged) >= mostChanges {
		return "", nil // The state that was logged last stays, so this one is logged if it lasts.
	}
	before := h.state
	h.state, h.logged = state, append(h.logged, now)
	if state == "" {
		return before, nil
	}
	return state, err
}
