package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// printStopped writes what an operator stopped, and which versions failed.
func printStopped(to io.Writer, stops []ask.Stop, versions []ask.VersionStop, now time.Time) {
	for _, s := range stops {
		named(to, "Stopped:", "%s", stopWords(s, now))
	}
	for _, v := range versions {
		named(to, "Stopped:", "%s", v.Words(now))
	}
}

// printSpread writes how changes reach the workloads.
func printSpread(to io.Writer, spread []ask.Spreading) {
	for i, s := range spread {
		named(to, firstName(i, "Spread:"), "%s", s.Words())
	}
}

// printStops writes what an operator stopped, for a list of workloads.
func printStops(to io.Writer, stops []ask.Stop, now time.Time) {
	for _, s := range stops {
		_ = say(to, "stopped: %s", stopWords(s, now))
	}
}

// stopWords describes an operator's stop, and the command that ends it.
func stopWords(s ask.Stop, now time.Time) string {
	what := extent{all: s.Namespace == "", namespace: s.Namespace}
	return s.Words(now) + fmt.Sprintf("; %q ends it", "lockstep resume "+what.flags())
}
