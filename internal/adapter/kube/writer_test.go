package kube_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// TestWriters: names that the API server makes up aren't programs, and of several owners of an annotation none is
// known to have written it. The times stay.
func TestWriters(t *testing.T) {
	t.Parallel()
	entry := func(manager string, second int64, fields string) metav1.ManagedFieldsEntry {
		written := metav1.NewTime(time.Unix(second, 0))
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &written, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const data, hold = `{"f:data":{"f:key":{}}}`, `{"f:metadata":{"f:annotations":{"f:hold":{}}}}`
	annotation := func(o metav1.Object) kube.Writer { return kube.AnnotationWriter(o, "hold") }
	for name, tc := range map[string]struct {
		reason  string
		read    func(metav1.Object) kube.Writer
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"Content":     {"the latest write of an owner of the content", kube.DataWriter, []metav1.ManagedFieldsEntry{entry("kubectl", 1, data), entry("helm", 2, data), entry("label", 3, hold)}, "helm"},
		"Ancient":     {"the API server merged the oldest entries", kube.DataWriter, []metav1.ManagedFieldsEntry{entry("kubectl", 1, data), entry("ancient-changes", 2, data)}, ""},
		"BeforeApply": {"the first server-side apply found fields without an owner", annotation, []metav1.ManagedFieldsEntry{entry("before-first-apply", 2, hold)}, ""},
		"Hold":        {"the only owner of the annotation", annotation, []metav1.ManagedFieldsEntry{entry("kubectl", 3, data), entry("lockstep-command", 2, hold)}, "lockstep-command"},
		"Shared":      {"two applies with the same value", annotation, []metav1.ManagedFieldsEntry{entry("flux", 1, hold), entry("argocd", 2, hold)}, ""},
	} {
		got := tc.read(&metav1.ObjectMeta{ManagedFields: tc.entries})
		if got.Manager != tc.want || got.At.Unix() != 2 {
			t.Errorf("%s: %s: by %q at %d, want by %q at 2", name, tc.reason, got.Manager, got.At.Unix(), tc.want)
		}
	}
}
