package histories_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

const (
	revisionKey = "deployment.kubernetes.io/revision"
	historyKey  = revisionKey + "-history"
	hashLabel   = appsv1.DefaultDeploymentUniqueLabelKey
)

// deployments does what the Deployment controller does with the revisions of one Deployment:
// it makes one of a new template unless the Deployment is paused, gives an old one that is
// used again a new number, and writes in several steps what it has done.
type deployments struct {
	*server
	*agenda

	key    client.ObjectKey
	queued bool
	// pods notes in the status how many pods there are, nil for a Deployment whose pods are always available.
	pods func(*appsv1.Deployment)
	// running is the hash of the template of those pods.
	running string
}

// see is told of each write.
func (c *deployments) see(writer string, _, now client.Object) {
	if d, ok := now.(*appsv1.Deployment); ok && client.ObjectKeyFromObject(d) == c.key && d.Status.ObservedGeneration < d.Generation && writer != "kube-controller-manager" {
		c.enqueue()
	}
}

func (c *deployments) enqueue() { c.soonOnce(&c.queued, c.sync) }

// current is the Deployment, nil when there is none.
func (c *deployments) current() *appsv1.Deployment {
	if d := c.stored(); d != nil {
		return d.DeepCopy()
	}
	return nil
}

func (c *deployments) stored() *appsv1.Deployment {
	d, _ := c.objects[nameIn(&appsv1.Deployment{}, c.key.Namespace, c.key.Name)].(*appsv1.Deployment)
	return d
}

// isObserved reports whether everything was done for the Deployment as it is.
func (c *deployments) isObserved() bool {
	d := c.stored()
	return d == nil || !c.queued && d.Status.ObservedGeneration >= d.Generation
}

func (c *deployments) sync() {
	d := c.current()
	if d == nil {
		return
	}
	c.adopt("kube-controller-manager", d)
	rs, next := c.find(d)
	switch {
	case rs != nil && annotate(rs, d, next):
		// The real one begins anew with the new copy. During a pause it first notes that it
		// has acted, and then the number.
		c.store("kube-controller-manager", c.objects[placeOf(rs)], rs)
		if d.Spec.Paused {
			c.observe(d)
		}
		c.enqueue()
	case rs != nil:
		c.setRevision(d, rs.Annotations[revisionKey])
		c.observe(c.current())
	case d.Spec.Paused:
		c.observe(d)
	default:
		rs = newReplicaSet(d)
		annotate(rs, d, next)
		if err := c.as("kube-controller-manager").Create(nil, rs); err != nil { //nolint:staticcheck // the small server needs no context
			panic(err)
		}
		c.prune(d)
		c.setRevision(d, rs.Annotations[revisionKey])
		c.queued = true
		c.after(c.soon(), func() {
			c.queued = false
			if now := c.current(); now != nil && now.UID == d.UID && now.Generation == d.Generation {
				c.observe(now)
				return
			}
			c.enqueue()
		})
	}
}

// prune deletes the oldest revisions.
func (c *deployments) prune(d *appsv1.Deployment) {
	const byDefault = 10
	sets := c.setsOf(d)
	slices.SortFunc(sets, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(numberOf(a), numberOf(b)) })
	for _, rs := range sets[:max(0, len(sets)-1-int(ptr.Deref(d.Spec.RevisionHistoryLimit, byDefault)))] {
		delete(c.objects, placeOf(rs))
	}
}

// marks are the annotation and the label by which a kind of workload tells its revisions.
type marks struct{ number, hash string }

func marksOf(d *appsv1.Deployment) marks {
	if d.Kind == kube.Rollout().Kind {
		return marks{canaryRevisionKey, canaryHashLabel}
	}
	return marks{revisionKey, hashLabel}
}

// ownedBy is the reference to a workload that controls a revision.
func ownedBy(d *appsv1.Deployment) []metav1.OwnerReference {
	kind := kindOf(d.Kind == kube.Rollout().Kind)
	return []metav1.OwnerReference{*metav1.NewControllerRef(d, kind.GroupVersionKind)}
}

// adopt takes over what another workload of the same name has left.
func (s *server) adopt(writer string, d *appsv1.Deployment) {
	for _, rs := range s.setsOf(d) {
		if metav1.GetControllerOf(rs) == nil {
			adopted := rs.DeepCopy()
			adopted.OwnerReferences = ownedBy(d)
			s.store(writer, rs, adopted)
		}
	}
}

// find finds the ReplicaSet of the template and the number that it gets.
func (s *server) find(d *appsv1.Deployment) (found *appsv1.ReplicaSet, number int64) {
	hash := hashOf(d)
	for _, rs := range s.setsOf(d) {
		if rs.Labels[marksOf(d).hash] == hash {
			found = rs.DeepCopy()
			continue
		}
		number = max(number, numberOf(rs))
	}
	return found, number + 1
}

// hasRevision reports whether the controller of a workload has acted on its template.
func (s *server) hasRevision(o client.Object) bool {
	if o, ok := o.(*appsv1.StatefulSet); ok {
		r, next := s.revisionOf(o)
		return r != nil && r.Revision >= next
	}
	rs, next := s.find(asDeployment(o))
	return rs != nil && numberOf(rs) >= next
}

func numberOf(o client.Object) int64 {
	n, _ := strconv.ParseInt(cmp.Or(o.GetAnnotations()[revisionKey], o.GetAnnotations()[canaryRevisionKey]), 10, 64)
	return n
}

// plain is a template without the hash that the controller adds.
func plain(t corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	c := t.DeepCopy()
	delete(c.Labels, hashLabel)
	delete(c.Labels, canaryHashLabel)
	return c
}

// hashOf is the hash of a workload's template. The same template has the same one.
func hashOf(d *appsv1.Deployment) string {
	sum := sha256.Sum256([]byte(templateText(d)))
	return hex.EncodeToString(sum[:4])
}

func newReplicaSet(d *appsv1.Deployment) *appsv1.ReplicaSet {
	hash := hashOf(d)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-" + hash, OwnerReferences: ownedBy(d)}}
	rs.Spec.Template = *d.Spec.Template.DeepCopy()
	rs.Spec.Template.Labels = maps.Clone(rs.Spec.Template.Labels)
	rs.Spec.Template.Labels[marksOf(d).hash] = hash
	rs.Labels = rs.Spec.Template.Labels
	return rs
}

// annotate copies the workload's annotations to its ReplicaSet and gives that its number.
func annotate(rs *appsv1.ReplicaSet, d *appsv1.Deployment, number int64) bool {
	before, key := maps.Clone(rs.Annotations), marksOf(d).number
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	for name, value := range d.Annotations {
		if name != key {
			rs.Annotations[name] = value
		}
	}
	if old := numberOf(rs); old < number {
		rs.Annotations[key] = strconv.FormatInt(number, 10)
		if old > 0 {
			earlier := strings.TrimPrefix(rs.Annotations[key+"-history"]+","+strconv.FormatInt(old, 10), ",")
			rs.Annotations[key+"-history"] = earlier
		}
	}
	return !maps.Equal(before, rs.Annotations)
}

func (c *deployments) setRevision(d *appsv1.Deployment, number string) {
	if d.Annotations[revisionKey] == number {
		return
	}
	d.Annotations[revisionKey] = number
	c.updateStatus(d)
}

// fill writes that all pods are available, and of the last template that wasn't paused.
func (c *deployments) fill(d *appsv1.Deployment) {
	if !d.Spec.Paused {
		c.running = hashOf(d)
	}
	s, wanted := &d.Status, *d.Spec.Replicas
	s.Replicas, s.UpdatedReplicas, s.AvailableReplicas = wanted, 0, wanted
	if c.running == hashOf(d) {
		s.UpdatedReplicas = wanted
	}
}

func (c *deployments) observe(d *appsv1.Deployment) {
	if d.Status.ObservedGeneration == d.Generation {
		return
	}
	d.Status.ObservedGeneration = d.Generation
	if c.pods != nil {
		c.pods(d)
	} else {
		c.fill(d)
	}
	c.updateStatus(d)
}
