package follow

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

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

// Cluster is what the loop reads.
type Cluster interface {
	View
	// Lists reports whether workloads of this kind and namespace have been listed.
	// Without that, one that is not found may well exist.
	Lists(kube.Key) bool
	// KnowsNamespaces reports whether the defaults of namespaces are known.
	KnowsNamespaces() bool
	// LacksNamespace reports whether the namespace is certainly gone, or on its way.
	LacksNamespace(name string) bool
	// Await wakes the workload once, with the next change that its controller notes; at once
	// when there was one since this copy.
	Await(*kube.Workload)
}

// Records is what the loop remembers.
type Records interface {
	Entry(kube.Key) (record.Entry, bool)
	Put(kube.Key, record.Entry) error
	Forget(kube.Key)
}

// Room is how much the record can take.
type Room interface {
	// Reserve keeps room for an entry of that size until Release, and says why when there is
	// none.
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
	// RollOut gives the workload what is ordered and returns what the API server says of
	// the write.
	RollOut(ctx context.Context, w *kube.Workload, order input.Order) (kube.RolledOut, error)
}

// Announcer tells people.
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
	// Advice says what a person can do about what was reverted, in the words of the
	// command line.
	Advice func(w *kube.Workload, live bool) string
	// Revisions asks the API server for a workload's revisions. Without it the loop does not
	// find out what other writers reverted.
	Revisions func(context.Context, *kube.Workload) (timeline.Past, error)
	// Installation is the namespace in which this one keeps its record, empty where that
	// does not matter.
	Installation string
	Metrics      prometheus.Registerer
	Log          logr.Logger
	Now          func() time.Time
}

// PodParts are the parts that only the strategies that work on pods need.
type PodParts struct {
	// Pods is nil when these strategies are switched off. Off then says how to switch them on.
	Pods Pods
	Off  string
	// Prompt notes the progress of a series of evictions.
	Prompt PromptRecords
}

// Reconciler brings workloads in step with their inputs, one at a time.
type Reconciler struct {
	Dependencies
	options   Options
	gatherer  *Gatherer
	metrics   *metrics
	reported  *reported
	conflicts *conflicts
}
