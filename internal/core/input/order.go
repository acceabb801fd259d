package input

import (
	"maps"
	"slices"
)

// Order is what a workload is to be given.
type Order struct {
	// All are the inputs that the workload follows.
	All []Finding
	// Due are those among them that are to be moved.
	Due []Finding
	// Kinds are the kinds of inputs that were looked at. What a template shows of others
	// is none of this program's business: a newer one may have written it.
	Kinds []Kind
	// Aborted is true when the last rollout was aborted. Pods of an earlier revision were
	// made since, and loaded what existed: that revision must not be used again as it is.
	Aborted bool
}

// Text is what is written into a template for the order. A template that shows
// just that already (an undo, and then the content went back as well) would not
// change and so not roll out: then the object's resource version is added, which
// readers skip; and so it is after an abort. An image that is set changes the template by
// itself.
func (o Order) Text(before Shown, resourceVersion string) string {
	after := o.Shown(before)
	if o.Aborted || maps.Equal(before, after) && !o.SetsImage() {
		return after.String() + ",again:" + resourceVersion
	}
	return after.String()
}

// Shown is what a template shows that was given the order, where it showed before:
// every input at the version that its pods load. One that comes with the template
// and is not to be moved stays as it was.
func (o Order) Shown(before Shown) Shown {
	all := Shown{}
	for id, mark := range before {
		if len(o.Kinds) > 0 && !slices.Contains(o.Kinds, id.Kind) {
			all[id] = mark
		}
	}
	for _, f := range o.All {
		mark := f.Shows
		if !f.Live && !o.rollsOut(f.ID) {
			mark = before[f.ID]
		}
		if mark != (Mark{}) {
			all[f.ID] = mark
		}
	}
	return all
}

// SetsImage reports whether the order writes the image of a container.
func (o Order) SetsImage() bool {
	return slices.ContainsFunc(o.Due, func(f Finding) bool { return f.Image != "" })
}

func (o Order) rollsOut(id ID) bool {
	return slices.ContainsFunc(o.Due, func(f Finding) bool { return f.ID == id })
}
