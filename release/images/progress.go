package images

// Progress hears what is being done.
type Progress interface {
	// Begin starts a step: "compile for linux/arm64".
	Begin(what string) Step
}

// Step is one piece of work that takes a while.
type Step interface {
	// Update says how far it is: "312 packages".
	Update(detail string)
	// End says what came out: "compiled for linux/arm64".
	End(result string)
}

// Silent is for those who do not want to hear of it.
type Silent struct{}

// Begin starts a step that nobody hears of.
func (Silent) Begin(string) Step { return Silent{} }

// Update says nothing.
func (Silent) Update(string) {}

// End says nothing.
func (Silent) End(string) {}
