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
	At      time.Time
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

// AnnotationWriter is the manager with the latest write among those that own the annotation.
func AnnotationWriter(o metav1.Object, key string) Writer {
	return writerOf(o.GetManagedFields(), `"f:`+key+`":`)
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
	return last
}
