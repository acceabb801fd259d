package imagewatch

import (
	"math/rand/v2"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
)

const (
	// DefaultInterval is how often a question is checked.
	DefaultInterval = time.Minute

	// maxPlatforms limits the platforms that are remembered, of all images together.
	maxPlatforms = 32_768

	// checkTimeout limits a check, including the wait for a free slot.
	checkTimeout = 10 * time.Minute
)

// Options of a [Resolver].
type Options struct {
	// Registries configure the registry client. Its interval is that of the questions.
	Registries registry.Options
	// Interval is how often each question is checked.
	Interval time.Duration
	// TTL is the maximum age of a shared response; usually the interval.
	TTL time.Duration
	// Jitter makes a pause a little longer, so checks don't all start at once.
	Jitter func(time.Duration) time.Duration
	// Checked, if set, is called after each check of a watched question, with the registry and
	// the error. It must return quickly.
	Checked func(host string, err error)
	// Exceeded, if set, is called when a bound is reached. It must return quickly.
	Exceeded func(registry.Bound)
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
	if o.Exceeded == nil {
		o.Exceeded = func(registry.Bound) {}
	}
	o.Registries.Interval, o.Registries.Exceeded = o.Interval, o.Exceeded
	return o
}

// upToATenth adds up to a tenth.
func upToATenth(d time.Duration) time.Duration {
	return d + rand.N(d/10+1) //nolint:gosec // It spreads requests and protects nothing.
}
