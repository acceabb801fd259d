package kube

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writer is another program that wrote an object, according to its managed fields.
type Writer struct {
	// Manager is the writer's field manager, empty when unknown.
	Manager string
	// At is the time of the writer's last write to the object, whatever field it wrote then.
	At time.Time
}

// isProgram reports whether the manager is a program. The API server itself names the merged entries of
// an object with more than ten managers, and the fields from before the first server-side apply.
func (w Writer) isProgram() bool {
	return w.Manager != "" && w.Manager != "ancient-changes" && w.Manager != "before-first-apply"
}

// TemplateWriter is the field manager, other than Lockstep, with the latest write among those
// that own fields of the pod template. That write may have been to another of its fields.
func TemplateWriter(o metav1.Object) Writer {
	others := slices.DeleteFunc(slices.Clone(o.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == FieldManager })
	return writerOf(others, `"f:template":`)
}

// DataWriter is the manager with the latest write among those that own content of a
// ConfigMap or Secret. That write may have been to another field.
func DataWriter(o metav1.Object) Writer {
	return writerOf(o.GetManagedFields(), `"f:data":`, `"f:binaryData":`)
}

// AnnotationWriter is the manager that owns the annotation: it wrote the value, at At or earlier. If
// several do, it isn't known, and At is the latest write of one of them.
func AnnotationWriter(o metav1.Object, key string) Writer {
	field := `"f:` + key + `":`
	writer, owners := writerOf(o.GetManagedFields(), field), 0
	for _, e := range o.GetManagedFields() {
		if e.FieldsV1 != nil && owns(e.FieldsV1.GetRawBytes(), []string{field}) {
			owners++
		}
	}
	if owners > 1 {
		writer.Manager = ""
	}
	return writer
}

// writerOf is the manager with the latest write among those that own one of the fields,
// spelled as in managed fields: "f:data":.
func writerOf(entries []metav1.ManagedFieldsEntry, fields ...string) Writer {
	var last Writer
	for _, e := range entries {
		if e.Time == nil || e.FieldsV1 == nil || !owns(e.FieldsV1.GetRawBytes(), fields) {
			continue
		}
		if e.Time.After(last.At) {
			last = Writer{Manager: e.Manager, At: e.Time.Time}
		}
	}
	if !last.isProgram() {
		last.Manager = ""
	}
	return last
}
