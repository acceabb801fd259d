package histories_test

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deadline is the progress deadline of the fleet's Deployments.
const deadline = 40 * time.Second

// crew are the pods of one Deployment. It does what kubelets do with them, and what the
// Deployment controller notes in the status.
type crew struct {
	*deployments
	fleet *fleet

	// hash is that of the template that pods are made from, and rollout counts the templates.
	hash    string
	rollout int
	state   podState
	// broken pods fail whatever they load.
	broken bool
}

type podState int

const (
	// starting: the first pod of a new template isn't available yet.
	starting podState = iota
	// up: all pods are of the template, and available unless they are broken.
	up
	// down: all pods are of the template, and crashed after a while.
	down
	// givenUp: the first pod of a new template was not available before the deadline.
	givenUp
)

func (f *fleet) newCrew(key client.ObjectKey) *crew {
	c := &crew{fleet: f, deployments: &deployments{server: f.server, agenda: f.agenda, key: key}, state: up}
	c.pods = c.note
	return c
}

// note begins the rollout of a template that is new, and writes how far it is.
func (c *crew) note(d *appsv1.Deployment) {
	if hash := hashOf(d); hash != c.hash && !d.Spec.Paused {
		first := c.hash == ""
		c.hash, c.rollout, c.state = hash, c.rollout+1, starting
		if first {
			c.state = up
		}
		rollout := c.rollout
		c.after(time.Duration(2+c.random.IntN(15))*time.Second, func() { c.become(rollout) })
		c.after(deadline, func() { c.giveUp(rollout) })
	}
	c.fill(d)
}

// fill writes the numbers of pods into a status. A new template has one pod beside the old ones
// until that is available.
func (c *crew) fill(d *appsv1.Deployment) {
	wanted, s := *d.Spec.Replicas, &d.Status
	s.Replicas, s.UpdatedReplicas, s.AvailableReplicas = wanted, wanted, wanted
	condition := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}
	if c.broken || c.state == down {
		s.AvailableReplicas = 0
	}
	if wanted > 0 && (c.state == starting || c.state == givenUp) {
		s.Replicas, s.UpdatedReplicas, condition.Reason = wanted+1, 1, "ReplicaSetUpdated"
	}
	if wanted > 0 && c.state == givenUp {
		condition.Status, condition.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
	}
	s.Conditions = []appsv1.DeploymentCondition{condition}
}

// write stores the status as it is.
func (c *crew) write() {
	d := c.current()
	before := d.Status.DeepCopy()
	c.fill(d)
	if d.Status.Replicas != before.Replicas || d.Status.UpdatedReplicas != before.UpdatedReplicas || d.Status.AvailableReplicas != before.AvailableReplicas || d.Status.Conditions[0] != before.Conditions[0] {
		c.updateStatus(d)
	}
}

// become: the new pods become available, unless they fail. Those that fail start again, and
// read the sources again.
func (c *crew) become(rollout int) {
	content := c.loads()
	switch {
	case rollout != c.rollout || c.state != starting && c.state != givenUp:
		return
	case c.broken || c.current().Spec.Paused || strings.HasPrefix(content, "bad"):
		c.after(5*time.Second, func() { c.become(rollout) })
		return
	}
	c.state = up
	c.write()
	if !strings.HasPrefix(content, "weak") {
		return
	}
	c.after(4*time.Second, func() {
		if rollout == c.rollout {
			c.state = down
			c.write()
		}
	})
}

// loads is the worst content that the pods load: "bad", "weak" or "good".
func (c *crew) loads() string {
	worst := "good"
	for _, source := range c.fleet.uses[c.key.String()] {
		content := c.fleet.contents[c.key.Namespace+" "+source]
		kind, forOne, _ := strings.Cut(content, " for ")
		one, _, _ := strings.Cut(forOne, " ")
		switch {
		case forOne != "" && one != c.key.Name:
		case strings.HasPrefix(kind, "bad"), strings.HasPrefix(kind, "weak") && worst == "good":
			worst = kind
		}
	}
	return worst
}

// giveUp: the Deployment controller gives up, but for a pause.
func (c *crew) giveUp(rollout int) {
	switch {
	case rollout != c.rollout || c.state != starting:
	case c.current().Spec.Paused:
		c.after(deadline, func() { c.giveUp(rollout) })
	default:
		c.state = givenUp
		c.write()
	}
}

// setBroken breaks the pods, or mends them.
func (c *crew) setBroken(broken bool) {
	c.broken = broken
	c.write()
}
