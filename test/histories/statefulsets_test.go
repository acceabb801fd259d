package histories_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// statefulSets does what the StatefulSet controller does with revisions: it makes one of a
// new template, gives an old one that is used again the highest number and forgets the one
// before, and names the revision in the status before pods are replaced.
type statefulSets struct {
	*server
	*agenda

	queued bool
	// counts returns the numbers of the pods of a revision, those that have started, and all; nil for a StatefulSet
	// without any.
	counts func(hash string) (of, started, all int32)
}

const statefulSetController = "kube-controller-manager"

// asStatefulSet is a StatefulSet with the specification of a Deployment.
func asStatefulSet(d *appsv1.Deployment) *appsv1.StatefulSet {
	o := &appsv1.StatefulSet{ObjectMeta: *d.ObjectMeta.DeepCopy()}
	spec := d.Spec.DeepCopy()
	o.Spec = appsv1.StatefulSetSpec{Replicas: spec.Replicas, Selector: spec.Selector, Template: spec.Template, RevisionHistoryLimit: spec.RevisionHistoryLimit}
	if d.Annotations[byHand] == "true" {
		o.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	}
	return o
}

// fromStatefulSet is the reverse.
func fromStatefulSet(o *appsv1.StatefulSet) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: o.ObjectMeta}
	d.Spec = appsv1.DeploymentSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Template: o.Spec.Template, RevisionHistoryLimit: o.Spec.RevisionHistoryLimit}
	d.Status.ObservedGeneration = o.Status.ObservedGeneration
	return d.DeepCopy()
}

func (c *statefulSets) see(writer string, _, now client.Object) {
	if _, ok := now.(*appsv1.StatefulSet); ok && writer != statefulSetController {
		c.soonOnce(&c.queued, c.sync)
	}
}

func (c *statefulSets) isObserved() bool {
	o, ok := c.objects[nameIn(&appsv1.StatefulSet{}, namespace, testkit.Web)].(*appsv1.StatefulSet)
	return !ok || !c.queued && o.Status.ObservedGeneration == o.Generation && (c.counts != nil || o.Status.CurrentRevision == o.Status.UpdateRevision)
}

// sync names the revision that pods are made from. The next time all pods are of it.
func (c *statefulSets) sync() {
	stored, ok := c.objects[nameIn(&appsv1.StatefulSet{}, namespace, testkit.Web)].(*appsv1.StatefulSet)
	if !ok {
		return
	}
	o, name := stored.DeepCopy(), c.revise(stored, kube.StatefulSet())
	s, wanted := &o.Status, *o.Spec.Replicas
	isDone := s.UpdateRevision == name || s.UpdateRevision == "" || wanted == 0
	s.ObservedGeneration, s.UpdateRevision, s.Replicas, s.AvailableReplicas, s.UpdatedReplicas = o.Generation, name, wanted, wanted, 0
	if isDone {
		s.CurrentRevision, s.UpdatedReplicas = name, wanted
	}
	if c.counts != nil {
		var of int32
		of, s.AvailableReplicas, s.Replicas = c.counts(name[strings.LastIndex(name, "-")+1:])
		s.UpdatedReplicas = of
		if s.Replicas == wanted && of == wanted {
			s.CurrentRevision = name
		}
		isDone = true // the next pod brings it here again
	}
	if !apiequality.Semantic.DeepEqual(*s, stored.Status) {
		c.store(statefulSetController, stored, o)
	}
	if !isDone {
		c.soonOnce(&c.queued, c.sync)
	}
}

// revise makes the revision of the template the newest, and returns its name.
func (c *server) revise(o client.Object, kind kube.Kind) string {
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(o, kind.GroupVersionKind)}
	d := asDeployment(o)
	for _, r := range c.revisions() {
		if metav1.GetControllerOf(r) == nil {
			adopted := r.DeepCopy()
			adopted.OwnerReferences = owner
			c.store(statefulSetController, r, adopted)
		}
	}
	found, next := c.revisionOf(o)
	switch {
	case found == nil:
		found = &appsv1.ControllerRevision{Revision: next, Data: runtime.RawExtension{Raw: revisionData(&d.Spec.Template)}}
		found.Namespace, found.Name, found.Labels, found.OwnerReferences = d.Namespace, d.Name+"-"+hashOf(d), maps.Clone(d.Spec.Template.Labels), owner
		if err := c.as(statefulSetController).Create(nil, found); err != nil { //nolint:staticcheck // the small server needs no context
			panic(err)
		}
	case found.Revision < next:
		again := found.DeepCopy()
		again.Revision = next
		c.store(statefulSetController, found, again)
	}
	return found.Name
}

// daemonSets does what the DaemonSet controller does: it makes a revision of a new template, gives
// an old one that is used again the highest number, and counts pods.
type daemonSets struct {
	*server
	*agenda

	queued bool
	counts func(hash string) (of, started, all int32)
}

func (c *daemonSets) see(writer string, _, now client.Object) {
	if _, ok := now.(*appsv1.DaemonSet); ok && writer != statefulSetController {
		c.soonOnce(&c.queued, c.sync)
	}
}

func (c *daemonSets) stored() *appsv1.DaemonSet {
	o, _ := c.objects[nameIn(&appsv1.DaemonSet{}, namespace, testkit.Web)].(*appsv1.DaemonSet)
	return o
}

func (c *daemonSets) isObserved() bool {
	o := c.stored()
	return o == nil || !c.queued && o.Status.ObservedGeneration == o.Generation
}

func (c *daemonSets) sync() {
	stored := c.stored()
	if stored == nil {
		return
	}
	o, name := stored.DeepCopy(), c.revise(stored, kube.DaemonSet())
	s := &o.Status
	s.ObservedGeneration, s.DesiredNumberScheduled = o.Generation, nodes
	s.UpdatedNumberScheduled, s.NumberAvailable, s.CurrentNumberScheduled = c.counts(name[strings.LastIndex(name, "-")+1:])
	if !apiequality.Semantic.DeepEqual(*s, stored.Status) {
		c.store(statefulSetController, stored, o)
	}
}

// revisions are the ControllerRevisions, the newest first.
func (c *server) revisions() []*appsv1.ControllerRevision {
	var all []*appsv1.ControllerRevision
	for _, o := range c.objects {
		if r, ok := o.(*appsv1.ControllerRevision); ok {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *appsv1.ControllerRevision) int { return int(b.Revision - a.Revision) })
	return all
}

// revisionOf is the revision of the template, nil when there is none, and the number that
// it gets.
func (c *server) revisionOf(o client.Object) (found *appsv1.ControllerRevision, next int64) {
	text := templateText(asDeployment(o))
	for _, r := range c.revisions() {
		if templateText(storedIn(r)) == text {
			found = r
			continue
		}
		next = max(next, r.Revision)
	}
	return found, next + 1
}

// storedIn is a workload with the template of a revision.
func storedIn(r *appsv1.ControllerRevision) *appsv1.Deployment {
	template, err := kube.ControllerRevisions().TemplateOf(r)
	if err != nil {
		panic(err)
	}
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: *template}}
}

// revisionData is the patch that a ControllerRevision stores.
func revisionData(template *corev1.PodTemplateSpec) []byte {
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		panic(err)
	}
	return text
}
