package histories

import "time"

// Fact is one write that the API server stored. Facts are in the order of their resource
// versions.
type Fact struct {
	Version uint64
	At      time.Time
	// Source names the written source, empty for the workload.
	Source string
	// Content is the source's content, empty when it was deleted. Held is true when it has the
	// hold annotation.
	Content string
	Held    bool
	// Workload is the written workload, nil when it was deleted. Orphaned is true when its
	// revisions stay.
	Workload *Workload
	Orphaned bool
	// Lockstep is true when Lockstep wrote the template. Early is true when the workload's
	// controller had not made a revision of the previous template yet, and so never will.
	Lockstep, Early bool
}

// Workload is the part of a Deployment or Rollout that a history needs.
type Workload struct {
	UID string
	// Template is the same for the same pod template. Shows are the contents that Lockstep wrote
	// there as delivered.
	Template     string
	Shows        map[string]string
	Paused, Held bool
	// Left is true when the workload isn't annotated for Lockstep to follow it.
	Left bool
	// Stable is the template that pods are made from while a Rollout is aborted, empty
	// otherwise. Older is true while pods of another template than the workload's run, Running
	// while pods of its own do. Beside is the other template while its pods run next to those of
	// a canary.
	Stable, Beside string
	Older, Running bool
	// Release is the number of the last release that a user requested.
	Release int64
}

// Word is Lockstep's state once it has decided on everything.
type Word struct {
	// Reason is the reason of its last decision.
	Reason string
	// Delivered is the recorded content of each source. Back are the sources recorded as
	// reverted.
	Delivered map[string]string
	Back      map[string]bool
	// Kept is true when a hold is on record whose annotation an undo removed.
	Kept bool
}

// Unknown is the record of a source that is due when its delivered content isn't known.
const Unknown = "unknown"

// Reasons that Lockstep can wait for, as in docs/reference/reasons.md.
const (
	reasonHeld    = "Held"
	reasonUndone  = "Undone"
	reasonPaused  = "Paused"
	reasonMissing = "Missing"
)
