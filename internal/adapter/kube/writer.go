package kube

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writer is another program that wrote an object, as far as its managed fields tell.
type Writer struct {
	// Manager is the name that the writer gave, empty when nothing is known.
	Manager string
	At      time.Time
}

// TemplateWriter is the manager with the latest write among those, Lockstep apart, that own
// fields of the pod template. That write may have been to another of its fields.
func TemplateWriter(o metav1.Object) Writer {
	var last Writer
	for _, e := range o.GetManagedFields() {
		if e.Manager == FieldManager || e.Time == nil || e.FieldsV1 == nil || e.Subresource != "" || !owns(e.FieldsV1.GetRawBytes(), []string{`"f:template":`}) {
			continue
		}
		if e.Time.After(last.At) {
			last = Writer{Manager: e.Manager, At: e.Time.Time}
		}
	}
	return last
}
