package rollouts

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Pods are the pods of workloads, for the strategies that work on them.
type Pods interface {
	List(context.Context, *kube.Workload) ([]pods.Pod, error)
	Evict(context.Context, pods.Pod) error
	Touch(ctx context.Context, pod pods.Pod, shown string) error
}

// Cluster is the part of the cluster that the loop reads.
type Cluster interface {
	View
	// Lists reports whether workloads of this kind and namespace have been listed. Until
	// then, a workload that isn't found may still exist.
	Lists(kube.Key) bool
	// KnowsNamespaces reports whether the namespace defaults are known.
	KnowsNamespaces() bool
	// LacksNamespace reports whether the namespace is certainly gone, or on its way.
	LacksNamespace(name string) bool
	Progress
}

// Progress is how the loop learns that rollouts go on, and whose, and what was written since its
// copy.
type Progress interface {
	// Reread reads a workload from the API server, because the watch may be late.
	Reread(context.Context, *kube.Workload) (*kube.Workload, error)
	// Await wakes the workload once, with the next status change by its controller, or at
	// once when there was one since this copy.
	Await(*kube.Workload)
	// AwaitHealth wakes the workload once, when its state of health changes, or at once when
	// there was a status change since this copy.
	AwaitHealth(*kube.Workload)
	// Followers visits the workloads that follow the input of a change.
	Followers(input.Change, func(*kube.Workload))
}

// Records is where the loop keeps its entries.
type Records interface {
	Entry(kube.Key) (record.Entry, bool)
	Put(kube.Key, record.Entry) error
	Forget(kube.Key)
}

// Room is the space in the record.
type Room interface {
	// Reserve keeps room for an entry of that size until FreeRoom, and explains why when
	// there is none.
	Reserve(key kube.Key, room int) (full string)
	FreeRoom(kube.Key)
}

// PromptRecords write an entry at once, for the strategies that work on pods.
type PromptRecords interface {
	// PutNow returns the API server's time of the write.
	PutNow(context.Context, kube.Key, record.Entry) (time.Time, error)
}

// Roller changes a workload's pod template.
type Roller interface {
	// RollOut delivers the order to the workload and returns the API server's answer.
	RollOut(ctx context.Context, w *kube.Workload, order input.Order) (kube.RolledOut, error)
}

// Announcer notifies users.
type Announcer interface {
	Announce(announce.Event)
}

// Dependencies are the parts that the loop works with.
type Dependencies struct {
	Vocabulary settings.Vocabulary
	Cluster    Cluster
	Families   []Family
	Records    Records
	Roller     Roller
	// Room is nil for a record without bounds.
	Room      Room
	OnPods    PodParts
	Announcer Announcer
	// Advice explains what a user can do about a revert, in the words of the command
	// line.
	Advice func(w *kube.Workload, live bool) string
	// Revisions queries the API server for a workload's revisions. Without it the loop
	// doesn't detect which inputs other writers reverted.
	Revisions func(context.Context, *kube.Workload) (timeline.Past, error)
	// Installation is the namespace in which this installation keeps its record, empty
	// where that doesn't matter.
	Installation string
	Gatekeepers
	Metrics prometheus.Registerer
	Log     logr.Logger
	Now     func() time.Time
}

// PodParts are the parts that work on pods.
type PodParts struct {
	// Pods is nil when these strategies are switched off. Off then explains how to switch them
	// on.
	Pods Pods
	Off  string
	// Prompt notes the progress of a series of evictions.
	Prompt PromptRecords
	// Starts queries the API server for when the pods of a revision started, whatever the
	// strategy. Without it, an input is due if only that shows whether another writer's rollout
	// has loaded it.
	Starts func(ctx context.Context, w *kube.Workload, revision string) (pods.Starts, error)
}

// Reconciler brings workloads in step with their inputs, one at a time.
type Reconciler struct {
	Dependencies
	options   Options
	gatherer  *Gatherer
	metrics   *metrics
	reported  *reported
	conflicts workqueue.TypedRateLimiter[kube.Key]
	spreads   *spreads
}

// stopped reports whether an operator has stopped the changes of a namespace.
func (r *Reconciler) stopped(namespace string) bool {
	if r.Stopped == nil {
		return false
	}
	_, stopped := r.Stopped(namespace)
	return stopped
}
