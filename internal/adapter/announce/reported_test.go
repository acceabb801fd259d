package announce

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestEventsAreBounded: whoever may create events can create thousands, each with 1 MiB.
func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	var all []Reported
	for i := range 5 * mostOfOne {
		e := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(began.Add(time.Duration(i) * time.Second))},
			InvolvedObject: corev1.ObjectReference{UID: types.UID("web"), Name: strings.Repeat("n", 1<<20)},
			Reason:         strings.Repeat("r", 1<<20), Message: strings.Repeat("m", 1<<20), ReportingController: strings.Repeat("b", 1<<20),
		}
		all = newest(append(all, reportedBy(e)), 2*mostOfOne)
		if len(all) > 2*mostOfOne {
			t.Fatalf("%d events are kept", len(all))
		}
	}
	all = newest(all, 0)
	if last := all[len(all)-1].At; len(all) != mostOfOne || !last.Equal(began.Add((5*mostOfOne-1)*time.Second)) || all[0].At.After(last) {
		t.Errorf("%d events from %s to %s are kept, want the newest %d, oldest first", len(all), all[0].At, last, mostOfOne)
	}
	for _, e := range all {
		if size := len(e.About) + len(e.Reason) + len(e.Note) + len(e.By); size > 4<<10 {
			t.Fatalf("an event of %d bytes is kept", size)
		}
	}
}
