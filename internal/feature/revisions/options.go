package revisions

import (
	"errors"
	"fmt"
	"time"
)

// Options of the continuous mode.
type Options struct {
	// Workers is how many objects are reconciled in parallel. Default 4.
	Workers int
	// Grace is how long an object may exist before Lockstep reports that no revision uses
	// it: the revision is created after the object, perhaps by hand. Default 10 minutes.
	Grace time.Duration
	// Observe decides and reports, but doesn't write.
	Observe bool
}

// DefaultOptions returns the options that suit most clusters.
func DefaultOptions() Options {
	return Options{Workers: 4, Grace: 10 * time.Minute}
}

// Validate lists everything that is wrong with the options.
func (o Options) Validate() error {
	var wrong []error
	if o.Workers < 1 {
		wrong = append(wrong, fmt.Errorf("workers for revisions %d: must be at least 1", o.Workers))
	}
	if o.Grace < 0 {
		wrong = append(wrong, fmt.Errorf("grace for unreferenced objects %s: must not be negative", o.Grace))
	}
	return errors.Join(wrong...)
}
