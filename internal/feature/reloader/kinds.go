package reloader

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// Kind is a kind of workload, and how it is reloaded.
type Kind struct {
	kube.Kind
	// manner is how it is written.
	manner manner
}

// manner is how a kind of workload is written.
type manner int

const (
	// byTemplate changes the pod template.
	byTemplate manner = iota
	// byRun creates a Job from the template.
	byRun
	// byReplacement deletes the object and creates it again.
	byReplacement
)

// Kinds are the kinds of workloads in a scope, in the order in which they are listed.
func Kinds(s Scope) []Kind {
	all := []Kind{{kube.Deployment(), byTemplate}}
	if s.CronJobs {
		all = append(all, Kind{kube.CronJob(), byRun})
	}
	if s.Jobs {
		all = append(all, Kind{job(), byReplacement})
	}
	all = append(all, Kind{kube.DaemonSet(), byTemplate}, Kind{kube.StatefulSet(), byTemplate})
	if s.Rollouts {
		all = append(all, Kind{kube.Rollout(), byTemplate})
	}
	return all
}

// job is the kind of Jobs. Lockstep itself doesn't follow them: a Job runs once.
func job() kube.Kind {
	return kube.NewKind(kube.Row{
		GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), Template: "spec.template",
		Typed: kube.Typed{
			Object:   func() client.Object { return &batchv1.Job{} },
			List:     func() client.ObjectList { return &batchv1.JobList{} },
			Template: func(o client.Object) *corev1.PodTemplateSpec { return &o.(*batchv1.Job).Spec.Template },
		},
	})
}

// leaves is why an object isn't reloaded whatever changes, empty if it may be.
func (r *Reloader) leaves(o client.Object) string {
	if o.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	if r.RerunJobs {
		return ""
	}
	switch o := o.(type) {
	case *batchv1.CronJob:
		switch {
		case ptr.Deref(o.Spec.Suspend, false):
			return "it is suspended"
		case o.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(o.Status.Active) > 0:
			return "a Job of it is running, and it forbids a second one"
		}
	case *batchv1.Job:
		owner := metav1.GetControllerOf(o)
		switch {
		case o.Status.CompletionTime != nil, hasFinished(o):
			return "it has finished"
		case owner != nil && owner.Kind == "CronJob":
			return "it belongs to a CronJob"
		}
	}
	return ""
}

func hasFinished(o *batchv1.Job) bool {
	for _, c := range o.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// isPaused reports whether a Deployment is paused.
func isPaused(o client.Object) bool {
	deployment, ok := o.(*appsv1.Deployment)
	return ok && deployment.Spec.Paused
}
