package histories_test

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// nodes is how many pods a DaemonSet has.
const nodes = 2

// asDaemonSet is a DaemonSet with the specification of a Deployment, and fromDaemonSet the reverse.
func asDaemonSet(d *appsv1.Deployment) *appsv1.DaemonSet {
	o := &appsv1.DaemonSet{ObjectMeta: *d.ObjectMeta.DeepCopy()}
	o.Spec = appsv1.DaemonSetSpec{Selector: d.Spec.Selector, Template: *d.Spec.Template.DeepCopy(), RevisionHistoryLimit: d.Spec.RevisionHistoryLimit}
	if o.Annotations[byHand] == "true" {
		o.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	}
	return o
}

func fromDaemonSet(o *appsv1.DaemonSet) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: o.ObjectMeta}
	d.Spec = appsv1.DeploymentSpec{Replicas: new(int32(nodes)), Selector: o.Spec.Selector, Template: o.Spec.Template, RevisionHistoryLimit: o.Spec.RevisionHistoryLimit}
	d.Status.ObservedGeneration = o.Status.ObservedGeneration
	return d.DeepCopy()
}

// asCronJob is a CronJob with the template of a Deployment, and fromCronJob the reverse.
func asCronJob(d *appsv1.Deployment) *batchv1.CronJob {
	o := &batchv1.CronJob{ObjectMeta: *d.ObjectMeta.DeepCopy()}
	o.Spec.JobTemplate.Spec.Template = *d.Spec.Template.DeepCopy()
	return o
}

func fromCronJob(o *batchv1.CronJob) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: *o.ObjectMeta.DeepCopy()}
	d.Spec.Replicas, d.Spec.Template = new(int32(0)), *o.Spec.JobTemplate.Spec.Template.DeepCopy()
	return d
}

// still is the controller of a workload that has nothing to do for its template.
type still struct{}

func (still) see(string, client.Object, client.Object) {}
func (still) isObserved() bool                         { return true }

// lends is how a Rollout names the Deployment whose template it uses.
func lends() map[string]any {
	return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": testkit.Web}
}

// isLent reports whether a Rollout uses the template of a Deployment.
func isLent(o client.Object) bool {
	rollout, ok := o.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	_, found, _ := unstructured.NestedMap(rollout.Object, "spec", "workloadRef")
	return found
}

// lender is the Deployment that lends its template, nil when there is none.
func (s *server) lender() *appsv1.Deployment {
	d, _ := s.objects[nameIn(&appsv1.Deployment{}, namespace, testkit.Web)].(*appsv1.Deployment)
	return d
}

// joinedFrom is a workload as a Deployment, with the template that it borrows.
func (s *server) joinedFrom(o client.Object) *appsv1.Deployment {
	d := asDeployment(o)
	if lender := s.lender(); isLent(o) && lender != nil {
		d.Spec.Template = *lender.Spec.Template.DeepCopy()
	}
	return d
}

// joined is the workload as a Deployment, with the template that it borrows; nil without one.
func (k *kubelets) joined() *appsv1.Deployment {
	o := k.workload()
	if o == nil || isLent(o) && k.lender() == nil {
		return nil
	}
	return k.joinedFrom(o)
}

// splits are the two objects of a Rollout with workloadRef: annotations and the rest belong to the
// Rollout, and the template to the Deployment.
func (p *person) splits(d *appsv1.Deployment) (rollout *unstructured.Unstructured, lender *appsv1.Deployment) {
	rollout = asRollout(d)
	spec := rollout.Object["spec"].(map[string]any)
	delete(spec, "template")
	spec["workloadRef"] = lends()
	lender = &appsv1.Deployment{}
	lender.Namespace, lender.Name = d.Namespace, d.Name
	lender.Spec = appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: d.Spec.Selector, Template: *d.Spec.Template.DeepCopy()}
	return rollout, lender
}

// kindOfHistory is the kind of the workload of a history that edits references.
func kindOfHistory(k histories.KindOf) kube.Kind {
	switch k {
	case histories.StatefulSet:
		return kube.StatefulSet()
	case histories.DaemonSet:
		return kube.DaemonSet()
	case histories.CronJob:
		return kube.CronJob()
	case histories.OfArgo, histories.Lent:
		return kube.Rollout()
	default:
		return kube.Deployment()
	}
}

// generationOf is the generation of a lender, empty without one.
func generationOf(lender *appsv1.Deployment) string {
	if lender == nil {
		return ""
	}
	return strconv.FormatInt(lender.Generation, 10)
}
