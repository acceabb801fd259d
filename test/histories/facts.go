package histories

import "time"

// Fact is one write, as the API server has it, in the order of its resource versions.
type Fact struct {
	Version uint64
	At      time.Time
	// Source names the source that was written, empty for the workload.
	Source string
	// Content is that of the source, empty when there is none; Held is true when it has
	// the annotation.
	Content string
	Held    bool
	// Workload is as it was written, nil when it was deleted; Orphaned is true when its
	// revisions stay.
	Workload *Workload
	Orphaned bool
	// Lockstep is true when Lockstep wrote the template, and Early when the workload's
	// controller had made no revision of the one before yet: it never will.
	Lockstep, Early bool
}

// Workload is what a history needs to know of a Deployment or Rollout.
type Workload struct {
	UID string
	// Template is the same for the same pod template, and Shows what Lockstep wrote there:
	// the contents that it was given.
	Template     string
	Shows        map[string]string
	Paused, Held bool
	// Left is true when nothing asks Lockstep to follow it.
	Left bool
	// Stable is the template that pods are made from while a Rollout is aborted, empty
	// while it is not; Older is true while pods of another template than its own run, Running
	// while pods of its own do, and Beside is the other template while they run beside those
	// of a canary.
	Stable, Beside string
	Older, Running bool
	// Release is the number of the last release that a person asked for.
	Release int64
}

// Word is what Lockstep says at a time when it has decided on everything.
type Word struct {
	// Reason is that of its last decision.
	Reason string
	// Delivered is what is on record of each source, by content. Back are those on record as
	// reverted.
	Delivered map[string]string
	Back      map[string]bool
	// Kept is true when a hold is on record whose annotation an undo removed.
	Kept bool
}

// Unknown is on record of a source that is due, where no content is known.
const Unknown = "unknown"

// Reasons that Lockstep can wait for, as docs/reference/reasons.md has them.
const (
	reasonHeld    = "Held"
	reasonUndone  = "Undone"
	reasonPaused  = "Paused"
	reasonMissing = "Missing"
)
