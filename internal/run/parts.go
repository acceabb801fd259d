package run

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/killswitch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/monitoring"
	"github.com/lockstep-dev/lockstep/internal/adapter/notify"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/server"
)

// parts holds the parts of the controller.
type parts struct {
	options *Options
	log     logr.Logger
	client  client.WithWatch
	cache   *cluster.Cache
	records *ledger.Records
	// announcer notifies users once the manager runs; notifier is the part of it that writes to
	// notification targets, nil without.
	announcer rollouts.Announcer
	notifier  *notify.Notifier
	// stops is the kill switch.
	stops *killswitch.Switch
	// ownership is nil when revisions are not attached.
	ownership *ownership.Watch
	// keyProblem is the result of the last attempt to read the installation key, nil before the
	// first.
	keyProblem atomic.Pointer[error]
	// key is the installation key, nil before it was read.
	key         atomic.Pointer[[]byte]
	saidHistory sync.Once
	saidStarts  sync.Once
	permissions *access.Permissions
	// attachPermissions is nil when objects aren't attached.
	attachPermissions *access.Permissions
}

// Controller runs the controller until the context ends.
func Controller(ctx context.Context, o Options) error {
	c, err := access.NewClient(ctx, o.Server.Config, client.Options{})
	if err != nil {
		return err
	}
	p := newParts(&o, c, o.Server.Log)
	o.Server.Ready = p.ready
	err = advised(server.Run(ctx, o.Server, p.setup))
	p.notifier.Flush(ctx)
	return err
}

func newParts(o *Options, c client.WithWatch, log logr.Logger) *parts {
	p := &parts{options: o, log: log, client: c}
	p.cache = cluster.NewCache(c, p.cacheOptions())
	p.stops = p.newSwitch()
	p.permissions = access.NewPermissions(c, o.permissions())
	p.permissions.Report = missingLog(log, p.cache.Status)
	p.records = ledger.New(c, ledger.Options{
		Namespace: o.Own.Namespace, Name: o.Own.Record, Version: o.Version, Now: o.Now,
		Report:     func(err error) { log.Error(advised(err), "cannot read or write the record") },
		Status:     func(s mirror.Sync) { ReportStatus(log, s) },
		Unwritable: p.announceUnwritable,
	})
	return p
}

func (p *parts) cacheOptions() cluster.CacheOptions {
	o := cluster.CacheOptions{
		Namespaces: p.options.Scope.Namespaces, Selector: p.options.Scope.Selector, Kinds: p.options.Scope.Kinds,
		Vocabulary: p.options.Words, Together: len(p.options.Shared) > 0, Now: p.options.Now,
		Report: func(s mirror.Sync) { ReportStatus(p.log, s) },
	}
	if p.options.Reload {
		o.Sources = []input.Kind{input.KindConfigMap, input.KindSecret}
	}
	if p.options.IsIdle() {
		o.Kinds, o.IgnoreNamespaces = nil, true
	}
	return o
}

// setup adds the watches, which every replica runs so a new leader has a full cache, and the
// loop and the record writer, which only the leader runs.
func (p *parts) setup(mgr ctrl.Manager) error {
	p.options.Server.Metrics.MustRegister(monitoring.NewCollector(p.cache, p.counted(), p.ownershipStatus))
	if err := mgr.Add(OnEveryReplica(p.watch)); err != nil {
		return err
	}
	if err := mgr.Add(OnEveryReplica(p.permissions.Run)); err != nil {
		return err
	}
	events, err := announce.NewAnnouncer(mgr.GetConfig(), announce.Reporter, p.options.Server.Metrics)
	if err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(events.Run)); err != nil {
		return err
	}
	if p.announcer, err = p.addNotify(mgr, events); err != nil {
		return err
	}
	if err := p.addSwitch(mgr); err != nil {
		return err
	}
	revisions, err := p.addRevisions(mgr)
	if err != nil || !p.options.rollsOut() {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(p.records.Run)); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(p.keepKey)); err != nil {
		return err
	}
	loop, err := p.addLoop(mgr)
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		p.sweep(ctx, loop.ForgetNamespaces, revisions)
		return nil
	}))
}

// counted is the record, or nil when none is kept.
func (p *parts) counted() monitoring.Counted {
	if !p.options.rollsOut() {
		return nil
	}
	return p.records
}

func (p *parts) addLoop(mgr ctrl.Manager) (*rollouts.Reconciler, error) {
	mover := patcher.NewPatcher(p.client, p.options.Rollout.Form)
	mover.Installation = p.options.Own.Namespace
	d := rollouts.Dependencies{
		Vocabulary: p.options.Words, Cluster: p.cache, Families: []rollouts.Family{p.configs()}, Records: p.records,
		Roller: mover, Installation: p.options.Own.Namespace, Room: p.records,
		Announcer:   p.announcer,
		Advice:      revertedAdvice,
		Revisions:   p.revisions,
		Gatekeepers: p.gatekeepers(),
		Metrics:     p.options.Server.Metrics,
		Log:         p.log, Now: p.options.Now,
	}
	d.OnPods.Starts = p.starts
	if p.options.Rollout.Pods {
		d.OnPods.Pods, d.OnPods.Prompt = patcher.NewPods(p.client), p.records
	} else {
		d.OnPods.Off = "start the controller with --pod-strategies"
	}
	wakers := []cluster.Waker{p.stops}
	if !p.options.Images.Enabled {
		d.Families = append(d.Families, rollouts.Off{
			Reason: input.ImagesOff, Asked: askedImages, Advice: "this controller does not follow images; start it with --images",
		})
	} else {
		inputs, err := p.addImages(mgr)
		if err != nil {
			return nil, err
		}
		d.Families, wakers = append(d.Families, inputs), append(wakers, inputs)
	}
	loop := rollouts.New(p.options.Follow, d)
	wakers = append(wakers, loop)
	return loop, loop.Setup(mgr, func(ctx context.Context, add func(kube.Key)) {
		if p.awaitSwitch(ctx) {
			cluster.Feed(ctx, p.cache, p.records, add, wakers...)
		}
	})
}

// configs is the family of ConfigMaps and Secrets, or its replacement when it is off.
func (p *parts) configs() rollouts.Family {
	if p.options.Reload {
		return configs.New(configs.Options{View: p.cache, Since: p.since, Shared: p.isShared})
	}
	return rollouts.Off{
		Reason: input.ReloadOff, Asked: askedSources, Advice: "this controller does not follow ConfigMaps and Secrets; start it without --reload=false",
	}
}

// askedSources are a workload's own annotations that request ConfigMaps and Secrets; a request
// of its namespace doesn't count.
func askedSources(w *kube.Workload, intent settings.Intent) []string {
	if _, own := w.Annotations[settings.Reload]; !own || intent.Mode != settings.Follow {
		return nil
	}
	return []string{settings.Reload}
}

// askedImages are the annotations of a workload that request images.
func askedImages(_ *kube.Workload, intent settings.Intent) []string {
	var keys []string
	for _, request := range intent.Images {
		keys = append(keys, request.Key())
	}
	return keys
}

// since is the time from which on the workload and that kind of its sources are followed; false
// when they were not followed before this process.
func (p *parts) since(w *kube.Workload, kind input.Kind) (time.Time, bool) {
	var latest time.Time
	scopes := p.cache.ScopesOf(w.Key, kind)
	for _, scope := range scopes {
		since, begun := p.records.Since(scope)
		if !begun {
			return time.Time{}, false
		}
		if since.After(latest) {
			latest = since
		}
	}
	return latest, len(scopes) > 0
}

// revisions reads a workload's history.
func (p *parts) revisions(ctx context.Context, w *kube.Workload) (timeline.Past, error) {
	past, err := lineage.Revisions(ctx, p.client, w)
	if past.Refused != nil {
		p.saidHistory.Do(func() {
			p.log.Error(past.Refused, "cannot list revisions; without the permission, Lockstep doesn't notice when other writers revert a change")
		})
	}
	return past, err
}

// starts reads when the pods of a workload's revision started.
func (p *parts) starts(ctx context.Context, w *kube.Workload, revision string) (pods.Starts, error) {
	starts, err := patcher.NewPods(p.client).Starts(ctx, w, revision)
	if starts.Refused != nil {
		p.saidStarts.Do(func() {
			p.log.Error(starts.Refused, "cannot list pods; without the permission, Lockstep can't find out what another rollout has loaded, and rolls out once more")
		})
	}
	return starts.Starts, err
}

// watch reads the installation key and then keeps cache and record in sync. The key comes first:
// with another key every Secret would have another version.
func (p *parts) watch(ctx context.Context) error {
	key, err := p.installationKey(ctx)
	if err != nil {
		return nil //nolint:nilerr // the context has ended before the API server answered
	}
	p.key.Store(&key)
	var watches wait.Group
	if !p.options.IsIdle() {
		watches.StartWithContext(ctx, func(ctx context.Context) { p.stops.Watch(ctx, p.client) })
	}
	if p.options.rollsOut() {
		watches.StartWithContext(ctx, p.records.Watch)
	}
	p.cache.Run(ctx, kube.NewHashers(key))
	watches.Wait()
	return nil
}

// ReportStatus logs when a watch starts or stops working.
func ReportStatus(log logr.Logger, s mirror.Sync) {
	if s.Err == nil {
		// An incomplete list is logged when it is complete.
		if s.Synced {
			log.Info("following", "resource", s.Resource)
		}
		return
	}
	if s.NotInstalled() {
		log.V(1).Info("kind is not installed; Lockstep follows it when it appears", "resource", s.Resource)
		return
	}
	log.Error(s.Err, "cannot follow; trying again", "resource", s.Resource)
}

// OnEveryReplica is a part that runs whether or not this process leads.
type OnEveryReplica func(context.Context) error

// Start implements manager.Runnable.
func (f OnEveryReplica) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (f OnEveryReplica) NeedLeaderElection() bool { return false }
