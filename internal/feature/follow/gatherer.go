package follow

import (
	"context"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Family is one kind of inputs, or a few that are alike.
type Family interface {
	// Kinds are the kinds of inputs that the family knows. What is on record of other
	// kinds is left as it is.
	Kinds() []input.Kind
	// Assess compares what the workload was last given with what exists now. An error
	// ends the look at the workload; what only this family cannot read is a finding with
	// the reason Unreadable. A family that has to know the past of the workload asks for it.
	Assess(ctx context.Context, w *kube.Workload, intent settings.Intent, given record.Entry, past kube.AskPast) (input.Assessment, error)
	// Drop forgets what was asked about a workload that is gone.
	Drop(kube.Key)
}

// View is what is known of the cluster without asking it: the controller's cache, or
// what a command has read.
type View interface {
	Workload(kube.Key) (*kube.Workload, bool)
	Namespace(name string) (*kube.Namespace, bool)
}

// Gatherer reads everything that a decision depends on. The controller and the command
// line use the same one; they differ in the view.
type Gatherer struct {
	Vocabulary settings.Vocabulary
	View       View
	Families   []Family
	// Entry is what is on record of a workload.
	Entry func(kube.Key) (record.Entry, bool)
	// Pods lists a workload's pods, where a decision depends on them. It is nil when
	// the strategies that work on pods are switched off, and PodsOff says why.
	Pods    func(context.Context, *kube.Workload) ([]pods.Pod, error)
	PodsOff string
	// Revisions asks the API server for a workload's revisions. It is nil where they are not
	// asked for, and only what the template shows tells of the past.
	Revisions func(context.Context, *kube.Workload) (timeline.Past, error)
	// Installation is the namespace in which this one keeps its record, empty where that
	// does not matter.
	Installation string
	// MaxDelay bounds the quiet window.
	MaxDelay time.Duration
	Now      func() time.Time
	// Read, when it is set, brings the view up to date before each look. What was read
	// and not followed has no bounds and no times of changes, so that the decision is
	// an estimate.
	Read func(context.Context) error

	// waiting are the pasts of workloads that wait.
	waiting sync.Map
}

// Gathered is a workload and what the decision on it depends on.
type Gathered struct {
	Workload    *kube.Workload
	Observation Observation
}
