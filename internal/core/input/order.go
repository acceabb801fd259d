package input

import (
	"maps"
	"slices"
)

// Order is what to deliver to a workload.
type Order struct {
	// All are the inputs that the workload follows.
	All []Finding
	// Due are those among them to be rolled out.
	Due []Finding
	// Kinds are the kinds of inputs that were assessed. Marks of other kinds in a
	// template are left alone: a newer program may have written them.
	Kinds []Kind
	// Aborted is true when the last rollout was aborted. Pods of an earlier revision were
	// created since and loaded the current versions, so that revision must not be reused
	// as it is.
	Aborted bool
}

// Text is written into a template for the order. A template that already shows the same
// text (after an undo, when the content changed back too) would not change and so not
// roll out. Then, and after an abort, the object's resource version is added, which
// readers skip. Setting an image changes the template anyway.
func (o Order) Text(before Shown, resourceVersion string) string {
	after := o.Shown(before)
	if o.Aborted || maps.Equal(before, after) && !o.SetsImage() {
		return after.String() + ",again:" + resourceVersion
	}
	return after.String()
}

// Shown are the marks of a template after the order is delivered: every input at the
// version that its pods load. An input that comes with the template and isn't rolled out
// keeps its mark.
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
