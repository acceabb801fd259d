package reloader

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/loop"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// FieldManager is the field manager of all writes.
const FieldManager = "Reloader"

// Strategy is how a workload shows what it was reloaded for.
type Strategy string

// The strategies.
const (
	// EnvVars writes an environment variable for each source.
	EnvVars Strategy = "env-vars"
	// Annotations writes the last source into an annotation of the pod template.
	Annotations Strategy = "annotations"
)

// Reasons of events.
const (
	// Reloaded is for a workload that was written.
	Reloaded = "Reloaded"
	// ReloadFail is for a write that failed. It is tried again.
	ReloadFail = "ReloadFail"
	// NotUnderstood is for annotations without effect.
	NotUnderstood = "ReloaderAnnotationNotUnderstood"
	// Missed is for a workload whose template shows a change that was missed before the first start.
	Missed = "ReloadMissed"
	// LeftToLockstep is for a workload that Lockstep's own controller has rolled out.
	LeftToLockstep = "LeftToLockstep"
)

// Options of a Reloader.
type Options struct {
	Words    stakater.Words
	Strategy Strategy
	// OnCreate and OnDelete act on sources that are created and deleted. With SyncAfterRestart,
	// those that are first seen at the start count as created.
	OnCreate, OnDelete, SyncAfterRestart bool
	// Quiet is how long the sources of a workload must be unchanged before it is reloaded, and
	// MaxDelay how long continuous changes can delay that.
	Quiet, MaxDelay time.Duration
	Scope           Scope
	// RerunJobs runs finished Jobs, CronJobs' Jobs and suspended CronJobs too, as the original
	// did.
	RerunJobs bool
	// DeliverMissed delivers, at the first start, changes that templates show to be missed.
	DeliverMissed bool
	// State is the namespace of the record, empty for none. Name begins the names of its objects:
	// several installations can share a namespace.
	State, Name string
	// Standby is true when several replicas run, of which one lists workloads.
	Standby bool
}

// Scope is what is watched, and which kinds are reloaded beside Deployments, DaemonSets and
// StatefulSets.
type Scope struct {
	ConfigMaps, Secrets, Classes bool
	Jobs, CronJobs, Rollouts     bool
	// Namespaces to watch; none means all of them, without the ignored ones.
	Namespaces, IgnoredNamespaces []string
	// NamespaceSelector chooses among all namespaces, ResourceSelector among the sources; nil
	// chooses all.
	NamespaceSelector, ResourceSelector labels.Selector
}

// Dependencies of a Reloader.
type Dependencies struct {
	Client client.WithWatch
	// Tell reports what happened to a workload. It must not wait.
	Tell func(Event)
	// Webhook, unless it is nil, is called for each change instead of reloading anything. It
	// must not wait.
	Webhook func()
	// Report is called when a resource can be read, or no longer.
	Report  func(mirror.Sync)
	Metrics *Metrics
	Log     logr.Logger
	Now     func() time.Time
}

// Event is about a workload, and the source whose change caused it.
type Event struct {
	About corev1.ObjectReference
	// Source is zero for a warning about the workload itself.
	Source  stakater.Source
	Reason  string
	Warning bool
	Note    string
}

// Reloader follows sources and reloads the workloads that ask for it.
type Reloader struct {
	Options
	Dependencies

	kinds   []Kind
	areas   []*area
	chosen  *chosen
	pending *pending
	record  *record
	listed  *listed
	told    *told
	// pauses are those after failures, by namespace.
	pauses workqueue.TypedRateLimiter[kube.Key]

	// passes is held for reading by each pass, so the last record is written after all of them.
	passes sync.RWMutex
	// leads is true while this process is the one that works.
	leads atomic.Bool
	mu    sync.Mutex
	add   func(kube.Key)
}

// New makes a Reloader that does nothing until it is set up.
func New(o Options, d Dependencies) *Reloader {
	r := &Reloader{Options: o, Dependencies: d, kinds: Kinds(o.Scope), pending: newPending(), listed: newListed(), told: newTold()}
	r.pauses = workqueue.NewTypedItemExponentialFailureRateLimiter[kube.Key](firstPause, longestPause)
	r.chosen = newChosen(o.Scope, d)
	r.areas = newAreas(r)
	r.record = newRecord(o.State, o.Name, d)
	r.record.wrote = r.listed.wrote
	return r
}

// inNamespace is the key of the changes of a namespace.
func inNamespace(name string) kube.Key { return kube.Key{Namespace: name} }

// paused is the key of a Deployment that has to be resumed.
func paused(namespace, name string) kube.Key {
	return kube.Key{GroupKind: kube.Deployment().GroupKind(), Namespace: namespace, Name: name}
}

const (
	workers = 16
	// writes is how many workloads of a namespace are written at the same time.
	writes = 16
	// Failures are retried after firstPause, and finally every longestPause.
	firstPause, longestPause = 500 * time.Millisecond, time.Minute
)

// Setup adds the leader's work to a manager. Watch is for every replica.
func (r *Reloader) Setup(mgr ctrl.Manager) error {
	return loop.Add(mgr, loop.Options[kube.Key]{
		Name: "reloader", Workers: workers, Reconciler: r, NamespaceOf: func(k kube.Key) string { return k.Namespace },
		About: "namespace", Log: r.Log, Feed: r.lead,
	})
}

// Status reports how well each resource can be read.
func (r *Reloader) Status() []mirror.Sync {
	var all []mirror.Sync
	for _, a := range r.areas {
		all = append(all, a.mirror.Status())
	}
	all = append(all, r.chosen.status()...)
	if r.Webhook == nil && (r.leads.Load() || !r.Standby) {
		all = append(all, r.listed.status(r.kinds)...)
	}
	return append(all, r.listed.refusals()...)
}

// wake makes the loop look at a key again.
func (r *Reloader) wake(k kube.Key) {
	r.mu.Lock()
	add := r.add
	r.mu.Unlock()
	if add != nil {
		add(k)
	}
}
