package images

// Progress receives the progress of the work.
type Progress interface {
	// Begin starts a step: "compile for linux/arm64".
	Begin(what string) Step
}

// Step is one step that takes a while.
type Step interface {
	// Update reports the progress: "312 packages".
	Update(detail string)
	// End reports the result: "compiled for linux/arm64".
	End(result string)
}

// Silent discards progress.
type Silent struct{}

// Begin starts a step without output.
func (Silent) Begin(string) Step { return Silent{} }

// Update does nothing.
func (Silent) Update(string) {}

// End does nothing.
func (Silent) End(string) {}
