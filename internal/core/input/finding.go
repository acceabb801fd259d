package input

import (
	"maps"
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

// Finding is what is known of one input for one workload.
type Finding struct {
	ID       ID
	Standing Standing
	Reason   Reason
	// Given is the version that the workload was last given, zero when unknown.
	Given fingerprint.Version
	// Current is the version that exists now.
	Current fingerprint.Version
	// Shows is the short digest of the whole content, for templates and people;
	// empty when the source does not exist.
	Shows string
	// ResourceVersion is that of the source, empty when it does not exist.
	ResourceVersion string
	// ChangedAt is when the content was last seen to change.
	ChangedAt time.Time
	// Barred says why this input must not be moved now, empty when it may be.
	Barred Reason
	// BarredBy is the text of the hold, when there is one.
	BarredBy string
	// Listed is true when only an annotation names the source.
	Listed bool
	// Warning is what is wrong with the source's own settings, empty when nothing is.
	Warning string
	// Env and SubPath are true when the pods read the source in a way that only a
	// new container can repeat; Volume when they read it in a way that the kubelet
	// repeats.
	Env, SubPath, Volume bool
	// Legacy is the digest that a predecessor would show, where one is replaced.
	Legacy string
}

// Order is what a workload is to be given.
type Order struct {
	// All are the inputs that the workload follows; new pods load all of them.
	All []Finding
	// Due are those among them that changed.
	Due []Finding
}

// Text is what is written into a template for the order. A template that shows
// just that already (an undo, and then the content went back as well) would not
// change and so not roll out: then the object's resource version is added, which
// readers skip.
func (o Order) Text(before Shown, resourceVersion string) string {
	after := o.Shown()
	if maps.Equal(before, after) {
		return after.String() + ",again:" + resourceVersion
	}
	return after.String()
}

// Shown is what a template shows that was given the order: every input at the
// version that its pods load.
func (o Order) Shown() Shown {
	all := Shown{}
	for _, f := range o.All {
		if f.Shows != "" {
			all[f.ID] = f.Shows
		}
	}
	return all
}
