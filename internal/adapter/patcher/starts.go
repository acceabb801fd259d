package patcher

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
)

// revisionOf is the name of the revision that a pod was made from, or the end of it. A StatefulSet
// writes the name into a label, a DaemonSet the hash at its end.
func revisionOf(pod *corev1.Pod) string {
	if owner := kube.ControllerOf(pod); owner != nil && owner.Kind == "ReplicaSet" {
		return owner.Name
	}
	return pod.Labels[appsv1.ControllerRevisionHashLabelKey]
}

// startedAt is the earliest start of a container that loaded its content then. One that waits to be
// started again will load it anew.
func startedAt(pod *corev1.Pod) time.Time {
	var earliest time.Time
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch {
		case c.State.Running != nil:
			earliest = pods.Earlier(earliest, c.State.Running.StartedAt.Time)
		case c.State.Terminated != nil:
			earliest = pods.Earlier(earliest, c.State.Terminated.StartedAt.Time)
		}
	}
	return earliest
}

func acceptedAt(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Time
}
