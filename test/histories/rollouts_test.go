package histories_test

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/testkit"
)

// argoRollouts does what the controller of Argo Rollouts does with revisions, stableRS and
// aborts, and writes it in the steps of the real one. It makes a revision also during a
// pause.
type argoRollouts struct {
	*server
	*agenda

	queued bool
	// counts returns the numbers of the pods of a revision, those that have started, and all; nil for a Rollout
	// without any.
	counts func(hash string) (of, started, all int32)
}

const argo = "rollouts-controller"

// see is told of each write.
func (c *argoRollouts) see(writer string, _, now client.Object) {
	_, own := now.(*unstructured.Unstructured)
	if _, lent := now.(*appsv1.Deployment); (own || lent) && writer != argo {
		c.enqueue()
	}
}

func (c *argoRollouts) enqueue() { c.soonOnce(&c.queued, c.sync) }

// rollout is the Rollout, nil when there is none.
func (s *server) rollout() *unstructured.Unstructured {
	if o, ok := s.objects[nameIn(&unstructured.Unstructured{}, namespace, testkit.Web)].(*unstructured.Unstructured); ok {
		return o.DeepCopy()
	}
	return nil
}

func (c *argoRollouts) isObserved() bool {
	o, ok := c.objects[nameIn(&unstructured.Unstructured{}, namespace, testkit.Web)].(*unstructured.Unstructured)
	return !ok || !c.queued && hasActed(o) && (!isLent(o) || statusOf(o).LenderGeneration == generationOf(c.lender()))
}

func (c *argoRollouts) sync() {
	o := c.rollout()
	if o == nil {
		return
	}
	if isLent(o) && c.lender() == nil {
		return
	}
	if c.noteLender(o) {
		c.enqueue()
		return
	}
	d := c.joinedFrom(o)
	c.adopt(argo, d)
	rs, next := c.find(d)
	if rs == nil {
		c.makeRevision(o, next)
		return
	}
	if annotate(rs, d, next) {
		c.store(argo, c.objects[placeOf(rs)], rs)
	}
	o = c.setRevision(o, rs)
	status := statusOf(o).after(d, rs.Labels[canaryHashLabel])
	if c.counts != nil {
		status.UpdatedReplicas, status.AvailableReplicas, status.Replicas = c.counts(status.CurrentPodHash)
	}
	if isLent(o) {
		status.LenderGeneration = generationOf(c.lender())
	}
	c.setStatus(o, status)
}

// makeRevision makes the revision of a new template. The real one then writes the number,
// for a canary that was under way the generation, and what follows from both at last.
func (c *argoRollouts) makeRevision(o *unstructured.Unstructured, number int64) {
	d, status := c.joinedFrom(o), statusOf(o)
	rs := newReplicaSet(d)
	annotate(rs, d, number)
	if err := c.as(argo).Create(nil, rs); err != nil { //nolint:staticcheck // the small server needs no context
		panic(err)
	}
	c.setRevision(o, rs)
	c.queued = true
	c.after(c.soon(), func() {
		c.queued = false
		now := c.rollout()
		if now != nil && now.GetUID() == o.GetUID() && now.GetGeneration() == o.GetGeneration() && status.CurrentPodHash != status.StableRS {
			early := statusOf(now)
			early.ObservedGeneration = strconv.FormatInt(now.GetGeneration(), 10)
			if isLent(now) {
				early.LenderGeneration = generationOf(c.lender())
			}
			c.setStatus(now, early)
		}
		c.enqueue()
	})
}

// noteLender notes which generation of its lender a Rollout is to use, and reports whether that was new. The
// status shows later which one it uses, so neither a number nor a status of before counts for that template.
func (c *argoRollouts) noteLender(o *unstructured.Unstructured) bool {
	generation := generationOf(c.lender())
	if !isLent(o) || o.GetAnnotations()[canaryLenderKey] == generation {
		return false
	}
	annotations := maps.Clone(o.GetAnnotations())
	annotations[canaryLenderKey] = generation
	o.SetAnnotations(annotations)
	c.store(argo, c.rollout(), o)
	return true
}

func (c *argoRollouts) setRevision(o *unstructured.Unstructured, rs *appsv1.ReplicaSet) *unstructured.Unstructured {
	if number := rs.Annotations[canaryRevisionKey]; o.GetAnnotations()[canaryRevisionKey] != number {
		annotations := maps.Clone(o.GetAnnotations())
		annotations[canaryRevisionKey] = number
		o.SetAnnotations(annotations)
		c.store(argo, c.rollout(), o)
	}
	return o
}

func (c *argoRollouts) setStatus(o *unstructured.Unstructured, status canaryStatus) {
	if statusOf(o) == status {
		return
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		panic(err)
	}
	o.Object["status"] = fields
	c.store(argo, c.rollout(), o)
}

// after is the status when everything was done for a Rollout whose template has that hash.
// The first revision, and one that is stable already, need no canary. Another template ends
// an abort, and so does a promotion.
func (s canaryStatus) after(d *appsv1.Deployment, hash string) canaryStatus {
	if s.CurrentPodHash != hash {
		s.CurrentPodHash, s.Abort, s.PromoteFull = hash, false, false
	}
	if s.StableRS == "" || s.PromoteFull {
		s.StableRS = hash
	}
	s.PromoteFull = false
	s.Abort = s.Abort && s.StableRS != hash
	s.ObservedGeneration = strconv.FormatInt(d.Generation, 10)
	wanted := *d.Spec.Replicas
	s.Replicas, s.UpdatedReplicas, s.Phase = wanted, wanted, "Healthy"
	switch {
	case s.Abort:
		s.UpdatedReplicas, s.Phase = 0, "Degraded"
	case d.Spec.Paused && s.StableRS != hash:
		s.UpdatedReplicas, s.Phase = 0, "Paused"
	case s.StableRS != hash:
		s.Replicas, s.Phase = 2*wanted, "Paused"
	case d.Spec.Paused:
		s.Phase = "Paused"
	}
	s.AvailableReplicas = s.Replicas
	return s
}
