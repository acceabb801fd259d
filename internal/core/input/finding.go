package input

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
)

// Standing is what to do for one input of a workload.
type Standing int

const (
	// Settled means that there is nothing to do.
	Settled Standing = iota
	// Record means that the current version counts as delivered; only our record changes.
	Record
	// Due means that the workload has to be rolled out.
	Due
)

// Finding is what is known about one input for one workload, whatever its kind.
type Finding struct {
	ID       ID
	Standing Standing
	Reason   Reason
	Versions
	// Change is the current version as all workloads that use it see it, zero when
	// delivering it takes no turn.
	Change Change
	Pace   Pace
	// ResourceVersion is the input object's, empty for an input that isn't an object or
	// doesn't exist.
	ResourceVersion string
	// ChangedAt is when the input was last seen to change.
	ChangedAt time.Time
	// Bars list what forbids rolling out the input now. They are independent: ending one
	// leaves the others.
	Bars []Bar
	// Live is true when each new pod loads the current version, whatever its template
	// shows. An image, or a source that is pinned, comes with the template.
	Live bool
	// Sealed is true for an immutable object. Nodes that hold a copy don't notice when it
	// is replaced by another object of its name.
	Sealed bool
	// Refresh is how much of the input running pods get when their kubelets refresh the
	// mounted files.
	Refresh Extent
	// Image is what the container of that name should run, when rolling out the input
	// writes that into the template; empty when it doesn't.
	Image string
	// Why adds to the reason, for users; may be empty.
	Why   string
	Notes Notes
}

// Pace is how an input asks to be delivered.
type Pace struct {
	// AtOnce is true when its changes aren't delivered in steps.
	AtOnce bool
	// Resumed are versions that are delivered even though they were stopped.
	Resumed []string
	// Source is what changes, if that isn't the input itself: the tag of an image.
	Source ID
}

// Versions are those of one input, as the workload sees it.
type Versions struct {
	// Delivered is the version that was last delivered, zero when unknown.
	Delivered fingerprint.Version
	// Current is the current version.
	Current fingerprint.Version
	// Skipped is true when the input was delivered and is missing, and pods that start now run without it in a
	// place that doesn't require it.
	Skipped bool
	// Shows is the mark in a pod template to which the current version was delivered;
	// zero when the input doesn't exist.
	Shows Mark
}

// Notes are what a family records about an input besides its version.
type Notes struct {
	// Memo is in the family's own format, and MemoIfDelivered replaces it when the
	// decision delivers the input. No other part reads them.
	Memo, MemoIfDelivered string
	// Proven is true when the end of the rollout that delivered the input is known.
	Proven bool
}

// Bar is something that forbids rolling out an input.
type Bar struct {
	Reason Reason
	// By is the text that a user wrote with it, or an explanation; may be empty.
	By string
}

// BarredFor reports whether the input is barred for the reason, and returns the bar's
// text.
func (f Finding) BarredFor(reason Reason) (by string, barred bool) {
	for _, bar := range f.Bars {
		if bar.Reason == reason {
			return bar.By, true
		}
	}
	return "", false
}

// IsWithheld reports whether the input stays at the template's version while others are
// rolled out. A live input can't: every new pod loads it.
func (f Finding) IsWithheld() bool {
	return f.Standing == Due && !f.Live && len(f.Bars) > 0
}

// Extent is how much of an input a refresh reaches.
type Extent int

const (
	// Nothing of it is reached.
	Nothing Extent = iota
	// Some of it is reached: pods read the rest in another way.
	Some
	// Everything is reached.
	Everything
)

// Warning is something about an input that a user should know and that doesn't stop a
// rollout.
type Warning struct {
	Reason Reason
	Text   string
	// About is the input, zero where that does not matter.
	About ID
	// Change is the version of the input, zero without one.
	Change Change
	// Shared is true when the cause isn't the workload's and is logged once for all workloads
	// that it affects.
	Shared bool
}

// Assessment is the result of one family of inputs for a workload.
type Assessment struct {
	Findings []Finding
	Warnings []Warning
	// Searched are digests of the patterns by which the family searched for inputs.
	Searched []string
	// TooMany describes how the workload asks for too many inputs, empty when it doesn't.
	// There is no finding then.
	TooMany string
	// AwaitsStatus is true when a change of the workload's status is a reason to assess it
	// again, and Recheck is when to assess it again without an event; zero for never.
	AwaitsStatus bool
	Recheck      time.Duration
}
