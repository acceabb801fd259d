package kube

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dev/lockstep/internal/core/health"
)

// patience limits how long a StatefulSet or DaemonSet may roll out without progress, because
// their controllers never time out. It equals a Deployment's default progress deadline, and
// replaces one that a Deployment doesn't set.
const patience = 10 * time.Minute

func deploymentStatus(o *appsv1.Deployment) Progress {
	s := Progress{Status: health.Status{
		Observed: o.Status.ObservedGeneration >= o.Generation, Paused: o.Spec.Paused, Counted: true,
		Counts: health.Counts{
			Wanted: int(ptr.Deref(o.Spec.Replicas, 1)), Existing: int(o.Status.Replicas),
			Updated: int(o.Status.UpdatedReplicas), Available: int(o.Status.AvailableReplicas),
		},
	}}
	for _, c := range o.Status.Conditions {
		switch {
		case c.Type != appsv1.DeploymentProgressing:
		case c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded":
			s.GivenUp = "it exceeded its progress deadline (ProgressDeadlineExceeded)"
		case c.Reason == "NewReplicaSetAvailable":
			// The deadline ends with the rollout: for pods that crash after they were available, the
			// Deployment controller never times out.
			s.Deadline = patience
			if seconds := ptr.Deref(o.Spec.ProgressDeadlineSeconds, 0); seconds > 0 {
				s.Deadline = time.Duration(seconds) * time.Second
			}
		}
	}
	return s
}

func statefulSetStatus(o *appsv1.StatefulSet) Progress {
	s := Progress{UpdateRevision: o.Status.UpdateRevision, Status: health.Status{
		Observed: o.Status.ObservedGeneration >= o.Generation, Counted: true, Deadline: patience,
		OnDelete: o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		Counts: health.Counts{
			Wanted: int(ptr.Deref(o.Spec.Replicas, 1)), Existing: int(o.Status.Replicas),
			Updated: int(o.Status.UpdatedReplicas), Available: int(o.Status.AvailableReplicas),
		},
	}}
	if rolling := o.Spec.UpdateStrategy.RollingUpdate; rolling != nil && !s.OnDelete {
		first := 0
		if o.Spec.Ordinals != nil {
			first = int(o.Spec.Ordinals.Start)
		}
		s.Partition = max(0, int(ptr.Deref(rolling.Partition, 0))-first)
	}
	return s
}

func daemonSetStatus(o *appsv1.DaemonSet) Progress {
	return Progress{Status: health.Status{
		Observed: o.Status.ObservedGeneration >= o.Generation, Counted: true, Deadline: patience,
		OnDelete: o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		Counts: health.Counts{
			Wanted: int(o.Status.DesiredNumberScheduled), Existing: int(o.Status.CurrentNumberScheduled),
			Updated: int(o.Status.UpdatedNumberScheduled), Available: int(o.Status.NumberAvailable),
		},
	}}
}

// conditionIn is the status of a condition, empty when the condition is missing.
func conditionIn(status map[string]any, name string) health.Condition {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == name {
			value, _ := condition["status"].(string)
			return health.Condition(value)
		}
	}
	return ""
}
