package kube

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Author is a field manager that changed a pod template.
type Author struct {
	Writer
	// Applied is true for a server-side apply. Its owner may have taken a field over without changing
	// it: Flux does so with what kubectl created. An update owns only the fields that it changed.
	Applied bool
}

// Authors finds who changed an object's pod template, from the object's managed fields.
type Authors struct {
	path    []string
	entries []metav1.ManagedFieldsEntry
}

// AuthorsOf are the authors of an object's pod template.
func AuthorsOf(kind Kind, o metav1.Object) Authors {
	return Authors{strings.Split(kind.Template, "."), o.GetManagedFields()}
}

// Between is the manager that made the present template, after, out of before, if the managed fields
// prove that: it owns every difference, and no other manager owns one. A nil before means that the
// template is new. The workload's own controller isn't an author: Argo Rollouts writes the whole template
// to fill in defaults.
//
// A writer that changes a field takes it from all other owners, so each changed field belongs to the
// writer that changed it last. A field that was removed belongs to none, and neither does the order of a
// list. An entry without a time is an apply that has changed nothing yet.
func (a Authors) Between(before, after *corev1.PodTemplateSpec) (Author, bool) {
	var all []share
	for i, e := range a.entries {
		if set := below(setOf(e), a.path); set != nil && e.Subresource == "" && e.Time != nil {
			all = append(all, share{i, set})
		}
	}
	owners, explained := ownersOf(fieldsOf(before), fieldsOf(after), all)
	maps.DeleteFunc(owners, func(i int, _ bool) bool { return a.isController(a.entries[i].Manager) })
	if !explained || len(owners) != 1 {
		return Author{}, false
	}
	for i := range owners {
		e := a.entries[i]
		author := Author{Writer{Manager: e.Manager, At: e.Time.Time}, e.Operation == metav1.ManagedFieldsOperationApply}
		return author, author.isProgram()
	}
	return Author{}, false
}

// isController reports whether the manager is the workload's own controller: the one that says which
// generation it observed.
func (a Authors) isController(manager string) bool {
	return slices.ContainsFunc(a.entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && below(setOf(e), []string{"status", "observedGeneration"}) != nil
	})
}

// setOf is the set of fields of an entry, nil if it can't be read.
func setOf(e metav1.ManagedFieldsEntry) map[string]any {
	if e.FieldsV1 == nil {
		return nil
	}
	var set map[string]any
	d := json.NewDecoder(bytes.NewReader(e.FieldsV1.GetRawBytes()))
	if d.Decode(&set) != nil {
		return nil
	}
	return set
}

// below is the part of a set at a path, nil if there is none.
func below(set map[string]any, path []string) map[string]any {
	for _, name := range path {
		set, _ = set["f:"+name].(map[string]any)
	}
	return set
}

// fieldsOf is a template as the API server's field paths see it, nil for none. It lacks the labels that
// the workload's controller adds to a revision.
func fieldsOf(t *corev1.PodTemplateSpec) any {
	if t == nil {
		return nil
	}
	own := t.DeepCopy()
	for _, label := range RevisionHashLabels() {
		delete(own.Labels, label)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(own)
	if err != nil {
		return nil
	}
	return fields
}
