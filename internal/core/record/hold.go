package record

// Hold is a hold on a workload, so that one which an undo takes away with the other
// annotations of the workload still counts. The zero value is none.
type Hold struct {
	// On is true for a hold. It is stored as there being one.
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
