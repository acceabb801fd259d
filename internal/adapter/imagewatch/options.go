package imagewatch

import (
	"math/rand/v2"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
)

const (
	// DefaultInterval is how often a question is asked.
	DefaultInterval = time.Minute

	// checkTimeout bounds a question with the time that it waits for its turn.
	checkTimeout = 10 * time.Minute
)

// Options of a [Resolver].
type Options struct {
	// Registries say how registries are reached. Their interval is that of the questions.
	Registries registry.Options
	// Interval is how often each question is asked.
	Interval time.Duration
	// TTL is how old an answer may be that is used for a question; usually the interval.
	TTL time.Duration
	// Jitter makes a pause a little longer, so that not all askers come at once.
	Jitter func(time.Duration) time.Duration
	// Checked is told of each check of a watched question that has ended: of which
	// registry, and why it failed; nil tells no one. It must return quickly.
	Checked func(host string, err error)
}

func (o Options) withDefaults() Options {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.TTL <= 0 {
		o.TTL = o.Interval
	}
	if o.Jitter == nil {
		o.Jitter = upToATenth
	}
	if o.Checked == nil {
		o.Checked = func(string, error) {}
	}
	o.Registries.Interval = o.Interval
	return o
}

// upToATenth adds up to a tenth.
func upToATenth(d time.Duration) time.Duration {
	return d + rand.N(d/10+1) //nolint:gosec // It spreads requests and protects nothing.
}
