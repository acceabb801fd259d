package notice

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/crowd"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

const (
	// mostGroups limits the messages that wait. The namespace with the most loses its oldest.
	mostGroups = 500
	// mostOfGroup limits the notices that one message lists, mostNotices those of all. Each
	// message lists at least the first few; the others are counted.
	mostOfGroup = 100
	mostNotices = 4096
	// mostRemembered limits the notices that are remembered as sent.
	mostRemembered = 4096
	// infoFactor is how much longer than warnings rollouts are gathered: a change reaches its
	// workloads one after the other.
	infoFactor = 6
	// follow is how long further notices of a group are gathered after its first message.
	follow = 5 * time.Minute
	// A notice isn't sent again while it is repeated within repeated, but once in every remind.
	repeated = time.Hour
	remind   = 24 * time.Hour
)

// Policy is how a queue gathers notices.
type Policy struct {
	// Batch is how long warnings and errors are gathered.
	Batch time.Duration
	// Single makes a message of each notice.
	Single bool
	// Repeats sends a notice even if it repeats another.
	Repeats bool
}

// Policy is how notices for the target are gathered. An Alertmanager wants repetitions: they keep
// an alert firing.
func (c Config) Policy(t Target) Policy {
	single := t.Plain || t.Body != nil
	return Policy{Batch: c.Batch, Single: single, Repeats: single || t.Kind == Alertmanager}
}

// Queue gathers the notices for one target, within bounds. It isn't safe for concurrent use.
type Queue struct {
	policy  Policy
	groups  map[string]*group
	bound   *crowd.Crowd[*group] // by namespace
	notices int                  // those that groups list
	dropped int                  // messages, since Dropped was last zero
	added   int                  // number of groups ever added
	sent    map[string]time.Time // when the message of a group was sent
	told    map[[16]byte]*told
	order   *crowd.Crowd[[16]byte] // of told, by namespace
}

// group is one message that waits.
type group struct {
	key, namespace string
	number         int
	notices        []Notice
	more           int
	due            time.Time
}

// told is when a notice was last sent, and when it last happened.
type told struct{ sent, last time.Time }

// NewQueue makes an empty queue.
func NewQueue(p Policy) *Queue {
	return &Queue{
		policy: p, groups: map[string]*group{}, bound: crowd.New[*group](mostGroups),
		sent: map[string]time.Time{}, told: map[[16]byte]*told{}, order: crowd.New[[16]byte](mostRemembered),
	}
}

// SetPolicy changes how further notices are gathered.
func (q *Queue) SetPolicy(p Policy) { q.policy = p }

// Add adds a notice, and returns how many messages were dropped for it.
func (q *Queue) Add(n Notice, now time.Time) (dropped int) {
	n.Text = cut(n.Text, textLimit)
	if !q.policy.Repeats && n.Severity != Info && n.Reason != input.Stopped && q.isRepetition(n, now) {
		return 0
	}
	key := n.group()
	if q.policy.Single {
		key = number(q.added)
	}
	g := q.groups[key]
	if g == nil {
		g = &group{key: key, namespace: n.Namespace, number: q.added, due: q.due(key, n, now)}
		q.groups[key] = g
		q.added++
		if left, full := q.bound.Add(n.Namespace, g); full {
			q.forget(left)
			q.dropped++
			dropped = 1
		}
	}
	same := func(other Notice) bool {
		return other.object() == n.object() && other.Namespace == n.Namespace && other.Text == n.Text
	}
	switch {
	case slices.ContainsFunc(g.notices, same):
	case len(g.notices) < listed, len(g.notices) < mostOfGroup && q.notices < mostNotices:
		g.notices = append(g.notices, n)
		q.notices++
	default:
		g.more++
	}
	return dropped
}

// due is when the message of a new group is sent.
func (q *Queue) due(key string, n Notice, now time.Time) time.Time {
	batch := q.policy.Batch
	if n.Severity == Info && !q.policy.Single {
		batch *= infoFactor
	}
	if last, sent := q.sent[key]; sent && n.Reason != input.Stopped && last.Add(follow).After(now.Add(batch)) {
		return last.Add(follow)
	}
	return now.Add(batch)
}

// isRepetition reports whether the notice was sent already, and remembers it.
func (q *Queue) isRepetition(n Notice, now time.Time) bool {
	sum := n.sum()
	before := q.told[sum]
	if before == nil {
		q.told[sum] = &told{sent: now, last: now}
		if left, full := q.order.Add(n.Namespace, sum); full {
			delete(q.told, left)
		}
		return false
	}
	is := now.Sub(before.last) < repeated && now.Sub(before.sent) < remind
	before.last = now
	if !is {
		before.sent = now
	}
	return is
}

// forget drops a group that wasn't sent. Its notices are no repetitions when they come again.
func (q *Queue) forget(g *group) {
	delete(q.groups, g.key)
	q.notices -= len(g.notices)
	for _, n := range g.notices {
		sum := n.sum()
		delete(q.told, sum)
		q.order.Remove(sum)
	}
}

// Pending is a message that is due.
type Pending struct {
	Message

	group *group
}

// Due lists the messages that are due, the oldest first.
func (q *Queue) Due(now time.Time) []Pending {
	return q.waiting(func(g *group) bool { return !g.due.After(now) })
}

// All lists every message, due or not.
func (q *Queue) All() []Pending { return q.waiting(func(*group) bool { return true }) }

func (q *Queue) waiting(wanted func(*group) bool) []Pending {
	var all []Pending
	for _, g := range q.groups {
		if wanted(g) {
			all = append(all, Pending{Message: Join(slices.Clone(g.notices), g.more), group: g})
		}
	}
	sorting.By(all, func(a, b Pending) int { return cmp.Compare(a.group.number, b.group.number) })
	return all
}

// Next is when the next message is due; false when none waits.
func (q *Queue) Next() (next time.Time, waits bool) {
	for _, g := range q.groups {
		if !waits || g.due.Before(next) {
			next, waits = g.due, true
		}
	}
	return next, waits
}

// Done removes messages that were sent, or that the receiver refuses for good. Notices that have
// arrived meanwhile wait for the next message of their group.
func (q *Queue) Done(pending []Pending, now time.Time) {
	for _, p := range pending {
		g := p.group
		if q.groups[g.key] != g {
			continue // It was dropped meanwhile.
		}
		q.notices -= len(p.Notices)
		g.notices, g.more = g.notices[len(p.Notices):], g.more-p.More
		q.sent[g.key] = now
		if len(g.notices) > 0 {
			g.due = now.Add(follow)
			continue
		}
		q.bound.Remove(g)
		delete(q.groups, g.key)
	}
	if q.policy.Single || len(q.sent) > mostRemembered {
		clear(q.sent) // Worst case, a message is sent earlier.
	}
	for key, at := range q.sent {
		if now.Sub(at) >= follow {
			delete(q.sent, key)
		}
	}
}

// Dropped counts the messages that were dropped since Reported.
func (q *Queue) Dropped() int { return q.dropped }

// Reported subtracts dropped messages that the receiver knows of.
func (q *Queue) Reported(dropped int) { q.dropped -= dropped }

// Len is the number of messages that wait.
func (q *Queue) Len() int { return len(q.groups) }
