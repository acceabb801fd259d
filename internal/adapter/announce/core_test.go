package announce

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCoreEvents: kubectl shows the component and the times of the older form.
func TestCoreEvents(t *testing.T) {
	t.Parallel()
	a := newAnnouncer("reloader", nil, nil)
	about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "4711"}
	at := time.Date(2026, 11, 18, 3, 0, 0, 0, time.UTC)
	for by, want := range map[string]string{"reloader-secrets": "reloader-secrets", "": "reloader"} {
		got := inCore(a.written(Event{About: &about, By: by, Reason: "Reloaded", Note: "a note"}, at))
		if diff := cmp.Diff(&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, InvolvedObject: about, Type: "Normal", Reason: "Reloaded", Message: "a note", Count: 1,
			Source: corev1.EventSource{Component: want}, ReportingController: want, ReportingInstance: want + "-" + a.host,
			FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at),
		}, got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "Name")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
