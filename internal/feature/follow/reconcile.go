package follow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/loop"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

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
	// Full says why the record has no room for an entry of that size, empty when it has.
	// The room is then kept until Release.
	Full(key kube.Key, room int) string
	Release(kube.Key)
}

// PromptRecords write an entry at once, for the strategies that work on pods.
type PromptRecords interface {
	// PutNow returns the API server's time of the write.
	PutNow(context.Context, kube.Key, record.Entry) (time.Time, error)
}

// Mover changes a workload's pod template.
type Mover interface {
	// Move gives the workload what is ordered and returns what the API server says of
	// the write.
	Move(ctx context.Context, w *kube.Workload, order input.Order) (kube.Moved, error)
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
	Mover      Mover
	// Room is nil for a record without bounds.
	Room Room
	// Pods is nil when the strategies that work on pods are switched off; PodsOff says
	// then what to do about it. Prompt is what they note.
	Pods      Pods
	Prompt    PromptRecords
	PodsOff   string
	Announcer Announcer
	// Advice says what a person can do about what was taken back, in the words of the
	// command line.
	Advice func(w *kube.Workload, live bool) string
	// Revisions asks the API server for a workload's revisions. Without it the loop does not
	// find out what other writers took back.
	Revisions func(context.Context, *kube.Workload) ([]timeline.Revision, error)
	// Installation is the namespace in which this one keeps its record, empty where that
	// does not matter.
	Installation string
	Metrics      prometheus.Registerer
	Log          logr.Logger
	Now          func() time.Time
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

// New makes a Reconciler.
func New(o Options, d Dependencies) *Reconciler {
	reported := newReported()
	r := &Reconciler{
		Dependencies: d, options: o, metrics: newMetrics(d.Metrics, func() tally { return reported.tally(d.Now()) }), reported: reported, conflicts: newConflicts(),
		gatherer: &Gatherer{
			Vocabulary: d.Vocabulary, View: d.Cluster, Families: d.Families,
			Entry: func(key kube.Key) (record.Entry, bool) { return d.Records.Entry(key) },

			Revisions: d.Revisions, Installation: d.Installation, MaxDelay: o.MaxDelay, Now: d.Now,
		},
	}
	if d.Room != nil {
		r.gatherer.Full = d.Room.Full
	}
	if d.Advice == nil {
		r.Advice = func(*kube.Workload, bool) string { return "" }
	}
	if d.Pods != nil {
		r.gatherer.Pods = d.Pods.List
	} else {
		r.gatherer.PodsOff = cmp.Or(d.PodsOff, "this program has no such strategies")
	}
	return r
}

// Feed adds keys to the queue until the context ends.
type Feed func(ctx context.Context, add func(kube.Key))

// Setup adds the loop to the manager. It runs on the leader only.
func (r *Reconciler) Setup(mgr ctrl.Manager, feed Feed) error {
	return loop.Add(mgr, loop.Options[kube.Key]{
		Name: "follow", Workers: r.options.Workers, Reconciler: r, About: "workload", Log: r.Log, Feed: feed,
	})
}

// Reconcile brings one workload in step.
func (r *Reconciler) Reconcile(ctx context.Context, key kube.Key) (ctrl.Result, error) {
	if r.Room != nil {
		defer r.Room.Release(key)
	}
	got, err := r.gatherer.Gather(ctx, key)
	switch w := got.Workload; {
	case err != nil:
		return ctrl.Result{}, err
	case w == nil:
		recheck, err := r.forgetGone(key)
		return ctrl.Result{RequeueAfter: recheck}, err
	case w.Deleting:
		return ctrl.Result{}, nil
	}
	d := Decide(got.Input)
	recheck, err := r.act(ctx, got, d)
	if err != nil {
		return r.failed(got.Workload, d, err)
	}
	r.conflicts.forget(key)
	if d.AwaitsStatus || got.Input.AwaitsStatus {
		r.Cluster.Await(got.Workload)
	}
	r.welcome(got, d)
	r.report(got, d)
	r.warn(got.Workload, got.Input)
	if d.Verb == Hold && recheck == 0 {
		recheck = announce.RepeatEvery
	}
	return ctrl.Result{RequeueAfter: sooner(recheck, got.Input.Recheck)}, nil
}

// sooner is the shorter of two times, of which zero means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// welcome tells once that a workload begins to be followed.
func (r *Reconciler) welcome(got Gathered, d Decision) {
	if got.Input.Entry.IsKnown() || got.Input.knowsNothing() || d.Verb == Ignore || d.isMistake() || d.Reason == input.GenerationNotObserved {
		return
	}
	e := followingEvent(got.Workload, got.Input)
	r.Log.Info("follows", "workload", got.Workload.Key.String(), "reason", string(input.Following), "sources", names(got.Input.Findings))
	r.Announcer.Announce(e)
}

// knowsNothing reports whether nothing can be put on record yet: no registry has answered.
func (in Input) knowsNothing() bool {
	return len(matching(in.Findings, func(f input.Finding) bool { return f.Reason == input.Unresolved })) == len(in.Findings)
}

// failed sorts errors by what follows from them.
func (r *Reconciler) failed(w *kube.Workload, d Decision, err error) (ctrl.Result, error) {
	if d.isOvertaken(err) {
		r.metrics.countConflict(w)
		return ctrl.Result{RequeueAfter: r.conflicts.pause(w)}, nil
	}
	r.metrics.countFailure(w)
	if r.reported.isNew(w.Key, string(input.ReloadFailed)+err.Error()) {
		r.Announcer.Announce(failureEvent(w, d, err))
	}
	return ctrl.Result{}, fmt.Errorf("%s %s: %w", d.Verb, w.Key, err)
}

// report tells people once: the same decision in the same situation is silent, but for a
// change that something forbids.
func (r *Reconciler) report(got Gathered, d Decision) {
	w := got.Workload
	r.reported.setStanding(w.Key, d, got.Input.Warnings)
	words := string(d.Reason) + d.Message
	if d.Verb == Hold {
		words += r.Now().Truncate(announce.RepeatEvery).String()
	}
	if d.Verb != Move && !r.reported.isNew(w.Key, words) {
		return
	}
	level := d.level()
	if !got.Input.Entry.PendingSince.IsZero() && d.PendingSince.IsZero() && d.Verb != Wait {
		level = 0 // what waited has come to its end, whichever
	}
	// The time is that after the patch, which may have taken long.
	r.metrics.count(w, d, r.Now())
	if d.Verb == Move || d.Reason == input.Evicted {
		r.reported.addRollout(w.Key, r.Now())
	}
	r.Log.V(level).Info("decided", "workload", w.Key.String(), "verb", string(d.Verb), "reason", string(d.Reason), "message", d.Message)
	live := slices.ContainsFunc(got.Input.Findings, func(f input.Finding) bool {
		_, back := f.BarredFor(input.Undone)
		return back && f.Live
	})
	for _, e := range eventsFor(w, d, r.Advice(w, live)) {
		r.Announcer.Announce(e)
	}
}

// warn tells once of what is probably a mistake and no reason to stop.
func (r *Reconciler) warn(w *kube.Workload, in Input) {
	events := warnings(w, in)
	texts := make([]string, len(events))
	for i, e := range events {
		texts[i] = e.Note
	}
	before, isNew := r.reported.replaceWarnings(w.Key, texts)
	if !isNew {
		return
	}
	for _, e := range events {
		if e.Reason == string(input.InvalidAnnotation) && !slices.Contains(before, e.Note) {
			r.metrics.invalid.WithLabelValues(w.Key.Kind, w.Key.Namespace).Inc()
		}
	}
	for _, e := range joined(events) {
		r.Announcer.Announce(e)
	}
}

// level is 0 for what people want to see and 1 for decisions to do nothing.
func (d Decision) level() int {
	switch d.Verb {
	case Wait:
		if d.Reason == input.GenerationNotObserved {
			return 1
		}
		return 0
	case Move, Evict, Refresh, Observe, Hold:
		return 0
	case Ignore, Leave, Remember:
	}
	if d.isMistake() || d.Reason == input.DeliveredByRollout || d.Reason == input.Undone || d.Reason == input.Released || d.Reason == input.Reloaded {
		return 0
	}
	return 1
}
