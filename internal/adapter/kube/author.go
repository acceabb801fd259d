package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
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

// Between are the managers that own a field of the template with another value in after, the present
// template, than in before. A nil before means that the template is new. The workload's own controller
// isn't an author: Argo Rollouts writes the whole template to fill in defaults.
//
// A writer that changes a field takes it from all other owners, so each changed field belongs to the
// writer that changed it last. A field that was removed belongs to none. An entry without a time is
// an apply that has changed nothing yet.
func (a Authors) Between(before, after *corev1.PodTemplateSpec) []Author {
	from, to := fieldsOf(before), fieldsOf(after)
	var found []Author
	for _, e := range a.entries {
		if e.Subresource != "" || e.Time == nil || !differs(below(setOf(e), a.path), from, to) || a.isController(e.Manager) {
			continue
		}
		found = append(found, Author{Writer{Manager: e.Manager, At: e.Time.Time}, e.Operation == metav1.ManagedFieldsOperationApply})
	}
	return found
}

// Removes reports whether a field of before is missing in after. No manager owns a removed field, so the
// one who removed it isn't known.
func Removes(before, after *corev1.PodTemplateSpec) bool {
	return before != nil && removes(fieldsOf(before), fieldsOf(after))
}

// removes compares lists by the names of their items, and other lists not at all: they are one field.
func removes(before, after any) bool {
	switch from := before.(type) {
	case map[string]any:
		to, _ := after.(map[string]any)
		for name, value := range from {
			if inner, has := to[name]; !has || removes(value, inner) {
				return true
			}
		}
	case []any:
		to, _ := after.([]any)
		for _, item := range from {
			name := child(item, "f:name")
			if name == nil {
				return false
			}
			same := slices.IndexFunc(to, func(other any) bool { return child(other, "f:name") == name })
			if same < 0 || removes(item, to[same]) {
				return true
			}
		}
	}
	return false
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

// fieldsOf is a template as the API server's field paths see it, nil for none.
func fieldsOf(t *corev1.PodTemplateSpec) any {
	if t == nil {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	if err != nil {
		return nil
	}
	return fields
}

// differs reports whether a field of the set has two values. A nil set has no fields.
func differs(set map[string]any, before, after any) bool {
	if set == nil {
		return false
	}
	if len(set) == 0 {
		return !reflect.DeepEqual(before, after)
	}
	for element, rest := range set {
		if element == "." {
			if (before == nil) != (after == nil) {
				return true
			}
			continue
		}
		inner, _ := rest.(map[string]any)
		if differs(inner, child(before, element), child(after, element)) {
			return true
		}
	}
	return false
}

// child follows one path element: f:image is a field, k:{"name":"web"} the item of a list with this key,
// v:"x" the value in a set and i:0 the item at an index. It is nil when the value lacks it.
func child(value any, element string) any {
	kind, rest, _ := strings.Cut(element, ":")
	if kind == "f" {
		fields, _ := value.(map[string]any)
		return fields[rest]
	}
	items, _ := value.([]any)
	if kind == "i" {
		if i, err := strconv.Atoi(rest); err == nil && i >= 0 && i < len(items) {
			return items[i]
		}
		return nil
	}
	var key any
	d := json.NewDecoder(strings.NewReader(rest))
	d.UseNumber() // a port is an int64 in the template
	if d.Decode(&key) != nil {
		return nil
	}
	for _, item := range items {
		if hasKey(item, key) {
			return item
		}
	}
	return nil
}

// hasKey reports whether an item of a list has the key: an object that has all its fields, or the
// value itself.
func hasKey(item, key any) bool {
	fields, isObject := key.(map[string]any)
	if !isObject {
		return fmt.Sprint(item) == fmt.Sprint(key)
	}
	has, _ := item.(map[string]any)
	for name, value := range fields {
		if has == nil || fmt.Sprint(has[name]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}
