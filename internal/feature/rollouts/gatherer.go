package rollouts

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

// Family is one kind of inputs, or a few similar ones.
type Family interface {
	// Kinds are the kinds of inputs that the family knows. The record of other kinds is
	// left as it is.
	Kinds() []input.Kind
	// Assess compares the delivered versions with the current ones. An error ends the check
	// of the workload. An input that only this family can't read is a finding with the
	// reason Unreadable. A family that needs the workload's past queries it.
	Assess(ctx context.Context, w *kube.Workload, intent settings.Intent, given record.Entry, past kube.AskPast) (input.Assessment, error)
	// Drop forgets cached answers about a workload that is gone.
	Drop(kube.Key)
}

// View is the known part of the cluster, without a query: the controller's cache, or the
// objects that a command has read.
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
	// Entry is the entry on record of a workload.
	Entry func(kube.Key) (record.Entry, bool)
	// Pods lists a workload's pods, where a decision depends on them. It is nil when the
	// strategies that work on pods are switched off, and PodsOff explains why.
	Pods    func(context.Context, *kube.Workload) ([]pods.Pod, error)
	PodsOff string
	// Revisions queries the API server for a workload's revisions. It is nil where they
	// aren't used, and only the template's marks show the past.
	Revisions func(context.Context, *kube.Workload) (timeline.Past, error)
	// Starts queries the API server for when the pods of a revision started. It is nil where only
	// revisions show the past.
	Starts func(ctx context.Context, w *kube.Workload, revision string) (pods.Starts, error)
	// Installation is the namespace in which this installation keeps its record, empty
	// where that doesn't matter.
	Installation string
	// MaxDelay bounds the quiet window, and Safety says what else delays a rollout.
	MaxDelay time.Duration
	Safety   Safety
	Gatekeepers
	Now func() time.Time
	// Read, when it is set, updates the view before each check. Objects that were read
	// and not watched have no bounds and no times of changes, so the decision is an
	// estimate.
	Read func(context.Context) error

	remembered
}

// remembered is what a gatherer keeps from one check to the next.
type remembered struct {
	// waiting are the pasts of workloads that wait.
	waiting sync.Map
	windows windows
	// paces are nil where nothing is damped.
	paces *paces
}

// Gathered is a workload and what the decision on it depends on.
type Gathered struct {
	Workload    *kube.Workload
	Observation Observation
}

// intent is what the settings of the workload and its namespace ask for.
func (g *Gatherer) intent(w *kube.Workload) settings.Intent {
	var defaults map[string]string
	if ns, ok := g.View.Namespace(w.Key.Namespace); ok {
		defaults = ns.Annotations
	}
	return g.Vocabulary.Intent(w.Annotations, defaults)
}
