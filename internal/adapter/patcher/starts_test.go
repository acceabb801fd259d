package patcher

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPodStarts: the earliest container that loaded its content counts, and one that is about to be
// started again doesn't.
func TestPodStarts(t *testing.T) {
	t.Parallel()
	at := func(second int) metav1.Time { return metav1.Date(2026, 11, 19, 3, 0, second, 0, time.UTC) }
	running := func(second int) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(second)}}}
	}
	ended := func(second int) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(second)}}}
	}
	waiting := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: ended(5).State}
	for name, tc := range map[string]struct {
		reason     string
		init, main []corev1.ContainerStatus
		want       time.Time
	}{
		"None":      {"it wasn't started", nil, nil, time.Time{}},
		"Main":      {"the first one counts", nil, []corev1.ContainerStatus{running(30), running(20)}, at(20).Time},
		"Init":      {"an init container loads content, too", []corev1.ContainerStatus{ended(10)}, []corev1.ContainerStatus{running(20)}, at(10).Time},
		"Crashed":   {"it loads the content anew", nil, []corev1.ContainerStatus{waiting}, time.Time{}},
		"Restarted": {"its init container wasn't started again", []corev1.ContainerStatus{ended(10)}, []corev1.ContainerStatus{waiting, running(50)}, at(10).Time},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-b-1", ResourceVersion: "7"}}
		pod.Status.StartTime, pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = new(at(1)), tc.init, tc.main
		got := newPod(pod)
		if !got.Started.Equal(tc.want) || !got.Accepted.Equal(at(1).Time) || got.Version != 7 {
			t.Errorf("%s: %s: started %s, accepted %s, version %d; want %s", name, tc.reason, got.Started, got.Accepted, got.Version, tc.want)
		}
	}
}

// TestRevisionOfAPod: a ReplicaSet is the pod's controller; the other kinds write a label.
func TestRevisionOfAPod(t *testing.T) {
	t.Parallel()
	byOwner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-b", Controller: new(true)}}}}
	byLabel := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels:          map[string]string{"controller-revision-hash": "db-b"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: new(true)}},
	}}
	if owned, labelled := revisionOf(byOwner), revisionOf(byLabel); owned != "web-b" || labelled != "db-b" {
		t.Errorf("the revisions are %q and %q, want web-b and db-b", owned, labelled)
	}
}
