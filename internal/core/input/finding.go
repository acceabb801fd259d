package input

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
)

// Standing is what has to happen for one input of a workload.
type Standing int

const (
	// Settled asks for nothing.
	Settled Standing = iota
	// Record takes the current version as given; only our record changes.
	Record
	// Due means that the workload has to be moved.
	Due
)

// Finding is what is known of one input for one workload, whatever its kind.
type Finding struct {
	ID       ID
	Standing Standing
	Reason   Reason
	Versions
	// ResourceVersion is that of the object which the input is, empty for one that is
	// no object or does not exist.
	ResourceVersion string
	// ChangedAt is when the input was last seen to change.
	ChangedAt time.Time
	// Bars say what forbids to move the input now. They add up: ending one leaves
	// the others.
	Bars []Bar
	// Live is true when each pod that starts loads what exists, whatever its template
	// shows. An image, or a source that is pinned, comes with the template.
	Live bool
	// Sealed is true for an immutable object. It can be replaced by another one of its
	// name, of which nodes with a copy do not hear.
	Sealed bool
	// Refresh is how much of the input running pods get when their kubelets refresh
	// the mounted files.
	Refresh Extent
	// Image is what the container of that name is to run, when moving the input writes
	// that into the template; empty when it does not.
	Image string
	// Why says more than the reason does, for people; empty when there is nothing to say.
	Why   string
	Notes Notes
}

// Versions are those of one input, as the workload sees it.
type Versions struct {
	// Delivered is the version that the workload was last given, zero when unknown.
	Delivered fingerprint.Version
	// Rebased is the version on record, measured as versions are measured now; zero when
	// it is on record so. It is the same version: what is noted of it stays.
	Rebased fingerprint.Version
	// Current is the version that exists now.
	Current fingerprint.Version
	// Shows is what a pod template shows that was given the current version; zero
	// when nothing exists.
	Shows Mark
}

// Notes are what a family wants to be put on record of an input besides its version.
type Notes struct {
	// Memo is in the family's own words, and MemoIfGiven takes its place when the decision
	// gives the workload the input. No other part reads them.
	Memo, MemoIfDelivered string
	// Proven is true when it is known how the rollout ended that gave the input.
	Proven bool
}

// Bar is something that forbids to move an input.
type Bar struct {
	Reason Reason
	// By is the text that a person gave with it, empty when there is none.
	By string
}

// BarredFor reports whether the input is barred for the reason, and by what.
func (f Finding) BarredFor(reason Reason) (by string, barred bool) {
	for _, bar := range f.Bars {
		if bar.Reason == reason {
			return bar.By, true
		}
	}
	return "", false
}

// IsWithheld reports whether the input simply stays at the version that the template
// shows while others are moved. A live one cannot: any pod that starts loads it.
func (f Finding) IsWithheld() bool {
	return f.Standing == Due && !f.Live && len(f.Bars) > 0
}

// Extent is how much of an input something reaches.
type Extent int

const (
	// Nothing of it is reached.
	Nothing Extent = iota
	// Some of it is reached: pods read the rest in another way.
	Some
	// Everything is reached.
	Everything
)

// Warning is something about an input that a person should know and that stops
// nothing.
type Warning struct {
	Reason Reason
	Text   string
	// About is the input, zero where that does not matter.
	About ID
}

// Assessment is what one family of inputs says about a workload.
type Assessment struct {
	Findings []Finding
	Warnings []Warning
	// Searched are digests of the patterns by which the family looked for inputs.
	Searched []string
	// AwaitsStatus is true when a change of the workload's status is a reason to assess it
	// again, and Recheck after how long time alone is one; zero when it is none.
	AwaitsStatus bool
	Recheck      time.Duration
}
