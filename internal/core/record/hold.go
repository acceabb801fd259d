package record

// Hold is a hold on a workload. It is recorded so it still counts when an undo removes it
// with the workload's other annotations. The zero value is none.
type Hold struct {
	// On is true for a hold. It isn't stored itself: a stored hold is on.
	On bool `json:"-"`
	// By is its text, cut at MessageLimit.
	By string `json:"by,omitempty"`
	// Undone is true when an undo removed its annotation.
	Undone bool `json:"undone,omitempty"`
}

// NewHold makes a hold that fits on record.
func NewHold(by string) Hold {
	return Hold{On: true, By: Brief(by)}
}
