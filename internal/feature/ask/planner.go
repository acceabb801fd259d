package ask

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// PlanOptions are the options of a plan.
type PlanOptions struct {
	Client client.Reader
	// Kinds of workloads that the controller follows.
	Kinds []kube.Kind
	// Namespace is for objects that don't name one.
	Namespace string
	// Hashers compute the digests; KeyKnown is false when Secret digests don't use the
	// controller's key.
	Hashers  kube.Hashers
	KeyKnown bool
	// Record is the installation's, which is in that namespace.
	Record       *ledger.Reading
	Installation string
	// Defaults are the settings of the controller.
	Defaults settings.Defaults
	// Serves is what the controller follows, and Stop what an operator stopped.
	Serves Serves
	Stop   settings.Stop
	Now    time.Time
}

// planner makes one plan.
type planner struct {
	PlanOptions

	overlay *cluster.Overlay
	plan    Plan
	// named are the workloads of the files, and touched the sources that they change.
	named   []kube.Key
	touched map[string][]input.ID
	// resettled are the namespaces whose settings the files change.
	resettled map[string]bool
	// onRecord are the entries of the affected workloads; noRecord is true when the record
	// can't be read.
	onRecord map[kube.Key]record.Entry
	noRecord bool
	// read counts what could be read from the cluster, unread lists what could not.
	read   int
	unread []error
	// unseen are the workloads of the files that can't be read, and hidesNamespace is true if a
	// namespace of the files can't be.
	unseen         []PlannedWorkload
	hidesNamespace bool
}

// PlanOf returns what would happen if the objects were applied, in their order.
func PlanOf(ctx context.Context, o PlanOptions, objects []manifest.Object) (Plan, error) {
	p := &planner{
		PlanOptions: o, overlay: cluster.NewOverlay(o.Hashers, o.Now), onRecord: map[kube.Key]record.Entry{},
		plan:    Plan{Workloads: []PlannedWorkload{}, Sources: []PlannedSource{}, Others: map[string]int{}},
		touched: map[string][]input.ID{}, resettled: map[string]bool{},
	}
	if err := p.readNamespaces(ctx, objects); err != nil {
		return Plan{}, err
	}
	for _, object := range objects {
		if err := p.add(ctx, object); err != nil {
			return Plan{}, err
		}
	}
	return p.plan, p.decide(ctx)
}

// decide makes the controller's decision about each affected workload.
func (p *planner) decide(ctx context.Context) error {
	before, after := p.gatherer(ctx, p.overlay.Before), p.gatherer(ctx, p.overlay.After)
	concerned := p.concerned()
	if err := p.readRecord(ctx, concerned); err != nil {
		return err
	}
	var all []prospect
	for _, key := range concerned {
		w, ok := p.overlay.After.Workload(key)
		if !ok {
			continue
		}
		now := prospect{key: key, touched: p.usedBy(w), estimate: p.noRecord}
		var err error
		if _, exists := p.overlay.Before.Workload(key); exists {
			if now.before, err = before.Gather(ctx, key); err != nil {
				return err
			}
		}
		if now.after, err = after.Gather(ctx, key); err != nil {
			return err
		}
		// Only a Rollout's status shows from which revision a planned template creates pods.
		now.estimate = now.estimate || w.Kind.RevisionLabel != "" && now.changesTemplate()
		now.assumed = p.assumedOf(now.after)
		all = append(all, now)
		p.plan.Workloads = append(p.plan.Workloads, p.Serves.planned(now.row(), key))
	}
	p.plan.Workloads = append(p.plan.Workloads, p.unseen...)
	p.plan.Partial = len(p.unseen) > 0 || p.hidesNamespace || len(p.unread) > 0 && len(p.touched)+len(p.resettled) > 0
	p.spreads(all)
	if !p.KeyKnown && slices.ContainsFunc(p.plan.Workloads, func(w PlannedWorkload) bool { return w.Estimate }) {
		p.note("the installation key cannot be read: Secrets are compared with those in the cluster instead of the delivered versions")
	}
	if p.noRecord {
		p.note("the record cannot be read: the current versions count as delivered")
	}
	for i, s := range p.plan.Sources {
		p.plan.Sources[i].Users = p.users(s)
	}
	return nil
}

// concerned are the workloads of the files and those that use sources that the files
// change.
func (p *planner) concerned() []kube.Key {
	keys := slices.Clone(p.named)
	for _, key := range p.overlay.After.Keys() {
		w, ok := p.overlay.After.Workload(key)
		if ok && (p.resettled[key.Namespace] || len(p.usedBy(w)) > 0 || slices.Contains(p.named, w.Borrows)) {
			keys = append(keys, key)
		}
	}
	sorting.By(keys, func(a, b kube.Key) int { return strings.Compare(a.Namespace+a.Name+a.Kind, b.Namespace+b.Name+b.Kind) })
	return slices.Compact(keys)
}

// usedBy are the sources that the files change and the workload uses or lists, before or
// after.
func (p *planner) usedBy(w *kube.Workload) []input.ID {
	var used []input.ID
	was, _ := p.overlay.Before.Workload(w.Key)
	for _, id := range p.touched[w.Key.Namespace] {
		if uses(w, id) || was != nil && uses(was, id) {
			used = append(used, id)
		}
	}
	return used
}

func uses(w *kube.Workload, id input.ID) bool {
	for _, ref := range w.Refs {
		if ref.Source == id {
			return true
		}
	}
	return slices.ContainsFunc(settings.Native{}.Intent(w.Annotations, nil).Listed, func(p settings.Pattern) bool { return p.Matches(id) })
}

func (p *planner) users(s PlannedSource) int {
	id, err := input.ParseID(s.Source)
	if err != nil {
		return 0
	}
	count := 0
	for _, key := range p.overlay.After.Keys() {
		if w, ok := p.overlay.After.Workload(key); ok && key.Namespace == s.Namespace && uses(w, id) {
			count++
		}
	}
	return count
}

// gatherer is the controller's own, for the current or the planned state.
func (p *planner) gatherer(ctx context.Context, view *cluster.Snapshot) *rollouts.Gatherer {
	failure := func(c input.Change) record.Failure {
		f, _ := p.Record.Failure(ctx, c) // the workloads' entries showed whether the record can be read
		return f
	}
	unknown := func(*kube.Workload, input.Kind) (time.Time, bool) { return time.Time{}, false }
	return &rollouts.Gatherer{
		Vocabulary: p.Serves.Words(p.Defaults), View: view,
		Families:  []rollouts.Family{configs.New(configs.Options{View: view, Since: unknown, Shared: p.Serves.IsShared})},
		Entry:     p.entry,
		Revisions: p.revisions, Installation: p.Installation,
		MaxDelay: math.MaxInt64, Now: func() time.Time { return p.Now },
		Safety: p.Serves.Safety(), Gatekeepers: rollouts.Gatekeepers{Stopped: p.Stop.For, Failure: failure},
	}
}

// revisions are the cluster's. A planned template that equals one of them would make it
// current again.
func (p *planner) revisions(ctx context.Context, w *kube.Workload) (timeline.Past, error) {
	if w.UID == "" {
		return timeline.Past{Asked: true}, nil
	}
	past, err := lineage.Revisions(ctx, p.Client, w.ByTemplate())
	if past.Refused != nil {
		p.note("revisions cannot be read: " + past.Refused.Error())
	}
	return past, err
}

func (p *planner) note(text string) {
	if !slices.Contains(p.plan.Notes, text) {
		p.plan.Notes = append(p.plan.Notes, text)
	}
}
