package histories_test

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// salted is the object as a run of Lockstep reads it. An API server with other defaults, or a
// Lockstep that digests templates in another way, gives a template that nobody has changed
// another digest, in the workload and in its revisions alike.
func salted(o client.Object, salt string) client.Object {
	if salt == "" {
		return o
	}
	o = o.DeepCopyObject().(client.Object)
	switch o := o.(type) {
	case *appsv1.Deployment:
		o.Spec.Template.Spec.SchedulerName = salt
	case *appsv1.StatefulSet:
		o.Spec.Template.Spec.SchedulerName = salt
	case *appsv1.DaemonSet:
		o.Spec.Template.Spec.SchedulerName = salt
	case *batchv1.CronJob:
		o.Spec.JobTemplate.Spec.Template.Spec.SchedulerName = salt
	case *appsv1.ReplicaSet:
		o.Spec.Template.Spec.SchedulerName = salt
	case *appsv1.ControllerRevision:
		d := storedIn(o)
		d.Spec.Template.Spec.SchedulerName = salt
		o.Data.Raw = revisionData(&d.Spec.Template)
	case *unstructured.Unstructured:
		if isLent(o) {
			return o
		}
		if err := unstructured.SetNestedField(o.Object, salt, "spec", "template", "spec", "schedulerName"); err != nil {
			panic(err)
		}
	}
	return o
}
