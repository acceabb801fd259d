package histories_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// installation is the namespace of the installation.
const installation = "lockstep"

// process is one run of Lockstep: the product's loop, family, mirrors and patches, between
// watches and a record that are simulated. What it has not written down when it is killed
// is lost.
type process struct {
	*agenda
	server *server
	kind   kube.Kind
	// lent is true when the workload is a Rollout that uses the template of a Deployment.
	lent bool
	salt string

	options rollouts.Options

	cached
	watches map[string]*watch
	loop    *rollouts.Reconciler
	client  client.Client

	records
	// began is since when workloads are followed.
	began time.Time

	dead, armed bool
	// loses is true until the answer to a patch is lost.
	loses bool
	// reckless is true for a process that knows no gates.
	reckless bool
	// ends, if set, is called when the process is killed.
	ends func()
	// queued are the workloads that wait for a worker, and awaited those that wait for their
	// controller, true for a change of their health.
	queued, awaited map[kube.Key]bool
	// later are those that are to be checked again without an event, and when.
	later map[kube.Key]time.Time
	// stop is the kill switch.
	stop settings.Stop
	// busy is true while its workers have other work, so that the queue waits. late is how
	// much later the watches of sources are than that of the workload.
	busy bool
	late time.Duration
	// last is the reason of each workload's last decision, and log all that it has said.
	last  map[string]string
	log   func(string)
	tells bool
}

// watch is a stream of events of one resource. It delivers in order, and late.
type watch struct {
	broken  bool
	busy    time.Time
	deliver func(client.Object, bool) error
	list    func() error
	// bookmark tells that all writes up to now were delivered.
	bookmark func()
}

func hashers() kube.Hashers {
	return kube.Hashers{Kinds: map[input.Kind]fingerprint.Hasher{
		input.KindConfigMap: {}, input.KindSecret: fingerprint.NewKeyedHasher([]byte("installation key")),
	}}
}

// start runs Lockstep from what is on disk, and lists what there is.
func start(p *process) *process {
	p.queued, p.awaited, p.later, p.last = map[kube.Key]bool{}, map[kube.Key]bool{}, map[kube.Key]time.Time{}, map[string]string{}
	p.sources, p.watches, p.client = map[input.Kind]*mirror.Mirror[*kube.Source]{}, map[string]*watch{}, caller{server: p.server, manager: kube.FieldManager, salt: p.salt}
	words := settings.Native{Defaults: settings.Defaults{Quiet: quiet}}
	p.workloads = mirror.New(mirror.Options[*kube.Workload]{
		Slim:    func(o any) (*kube.Workload, error) { return kube.SlimWorkload(p.kind, o, words) },
		Changed: func(old, now *kube.Workload) { p.wake(cmp.Or(now, old).Key) }, Seen: p.seen, Now: time.Now,
	})
	p.watches[nameOf(p.kind.NewObject(), "")] = follows(p.workloads, p, p.kind.NewObject())
	if p.lent {
		p.lenders = mirror.New(mirror.Options[*kube.Workload]{
			Slim:    func(o any) (*kube.Workload, error) { return kube.SlimWorkload(kube.Deployment(), o, words) },
			Changed: func(_, _ *kube.Workload) { p.workloads.Each(func(w *kube.Workload) { p.wake(w.Key) }) }, Now: time.Now,
		})
		p.watches[nameOf(&appsv1.Deployment{}, "")] = follows(p.lenders, p, &appsv1.Deployment{})
	}
	p.namespaces = mirror.New(mirror.Options[*kube.Namespace]{
		Slim:    kube.SlimNamespace,
		Changed: func(old, now *kube.Namespace) { p.wakeUsers(cmp.Or(now, old).Name, input.ID{}) }, Now: time.Now,
	})
	p.watches[nameOf(&corev1.Namespace{}, "")] = follows(p.namespaces, p, &corev1.Namespace{})
	for kind, object := range map[input.Kind]client.Object{input.KindConfigMap: &corev1.ConfigMap{}, input.KindSecret: &corev1.Secret{}} {
		p.sources[kind] = mirror.New(mirror.Options[*kube.Source]{
			Slim:    func(o any) (*kube.Source, error) { return p.digests.Slim(o, words) },
			Changed: func(old, now *kube.Source) { p.wakeUsers(cmp.Or(now, old).Namespace, cmp.Or(now, old).ID) }, Now: time.Now,
		})
		p.watches[nameOf(object, "")] = follows(p.sources[kind], p, object)
	}
	p.loop = p.newLoop(words)
	p.loop.Wake(p.wake)
	for _, w := range p.watches {
		p.must(w.list())
	}
	for key := range p.entries.disk { // also of those that are gone
		p.wake(key)
	}
	return p
}

// follows makes the watch of a mirror.
func follows[T mirror.Slim[T]](m *mirror.Mirror[T], p *process, resource client.Object) *watch {
	s := p.server
	return &watch{
		deliver: func(o client.Object, gone bool) error {
			p.switches(o, gone)
			if gone {
				return m.Delete(o)
			}
			defer m.UpdateResourceVersion(o.GetResourceVersion())
			return m.Update(p.read(o))
		},
		list: func() error {
			var all []any
			p.switches(resource, true)
			for _, o := range s.objects {
				if nameOf(o, "") == nameOf(resource, "") {
					p.switches(o, false)
					all = append(all, p.read(o))
				}
			}
			return m.Replace(all, strconv.FormatUint(s.version, 10))
		},
		bookmark: func() { m.UpdateResourceVersion(strconv.FormatUint(s.version, 10)) },
	}
}

func (p *process) newLoop(words settings.Vocabulary) *rollouts.Reconciler {
	revisions := func(ctx context.Context, w *kube.Workload) (timeline.Past, error) {
		return lineage.Revisions(ctx, p.client, w)
	}
	starts := func(ctx context.Context, w *kube.Workload, revision string) (pods.Starts, error) {
		if !p.server.hasPods {
			return pods.Starts{Asked: true, Unknown: true}, nil
		}
		s, err := patcher.NewPods(p.client).Starts(ctx, w, revision)
		return s.Starts, err
	}
	since := func(*kube.Workload, input.Kind) (time.Time, bool) { return p.began, true }
	return rollouts.New(p.options, rollouts.Dependencies{
		Vocabulary: words, Cluster: p, Records: p, Roller: p, Announcer: p, Revisions: revisions, OnPods: rollouts.PodParts{Starts: starts}, Installation: installation,
		Families: []rollouts.Family{configs.New(configs.Options{View: p, Since: since, Shared: func(id input.ID) bool { return id == input.ConfigMap("ca") }})},
		Metrics:  prometheus.NewRegistry(), Now: time.Now,
		Gatekeepers: rollouts.Gatekeepers{Stopped: func(namespace string) (string, bool) { return p.stop.For(namespace) }, Kinds: kube.Kinds(), Failure: p.Failure, Stops: p},
		Log:         logr.New(&decisions{process: p}),
	})
}

// decisions is the log, which says the reason of each decision.
type decisions struct {
	process *process
	values  []any
}

func (l *decisions) Init(logr.RuntimeInfo)  {}
func (l *decisions) Enabled(level int) bool { return level <= 1 }

func (l *decisions) Info(_ int, text string, values ...any) {
	said := map[any]any{}
	for i := 0; i+1 < len(values); i += 2 {
		said[values[i]] = values[i+1]
	}
	if text == "decided" {
		l.process.last[fmt.Sprint(said["workload"])] = fmt.Sprint(said["reason"])
	}
	if l.process.tells {
		l.process.log(fmt.Sprint(text, l.values, values))
	}
}

func (l *decisions) Error(err error, text string, values ...any) {
	l.Info(0, text, slices.Concat(values, []any{"error", err})...)
}

func (l *decisions) WithName(string) logr.LogSink { return l }

func (l *decisions) WithValues(values ...any) logr.LogSink {
	return &decisions{process: l.process, values: slices.Concat(l.values, values)}
}

func (p *process) must(err error) {
	if err != nil {
		panic(err)
	}
}

// see sends a write through the watch of its resource.
func (p *process) see(_ string, old, now client.Object) {
	o := now
	if o == nil {
		o = old
	}
	w, ok := p.watches[nameOf(o, "")]
	if !ok || w.broken || p.dead {
		return
	}
	at := time.Now().Add(p.soon())
	if asDeployment(o) == nil {
		at = at.Add(p.late)
	}
	if at.Before(w.busy) {
		at = w.busy
	}
	w.busy = at
	p.after(time.Until(at), func() {
		if !w.broken && !p.dead {
			p.must(w.deliver(o, now == nil))
		}
	})
}

// bookmarks are what the API server sends through each watch once a minute.
func (p *process) bookmarks() {
	for _, w := range p.watches {
		if !w.broken && !p.dead {
			w.bookmark()
		}
	}
}

// breakWatches ends watches, all of them or one of them.
func (p *process) breakWatches(all bool) {
	for _, w := range p.watches {
		w.broken = true
	}
	if all {
		return
	}
	// In the order of names, so that the same seed breaks the same one.
	spared := []string{nameOf(p.kind.NewObject(), ""), nameOf(&corev1.ConfigMap{}, ""), nameOf(&corev1.Secret{}, "")}
	p.watches[spared[p.random.IntN(len(spared))]].broken = false
}

// look begins broken watches again, each by itself, and with a list.
func (p *process) look() {
	all := []client.Object{&corev1.Secret{}, p.kind.NewObject(), &corev1.ConfigMap{}, &corev1.Namespace{}}
	if p.lent {
		all = append(all, &appsv1.Deployment{})
	}
	for _, o := range all {
		w := p.watches[nameOf(o, "")]
		if !w.broken {
			continue
		}
		p.after(p.soon()*10, func() {
			if !p.dead && w.broken {
				w.broken = false
				p.must(w.list())
			}
		})
	}
}

// sees reports whether no watch is broken.
func (p *process) sees() bool {
	for _, w := range p.watches {
		if w.broken {
			return false
		}
	}
	return true
}

// kill ends the process as it is.
func (p *process) kill() {
	if !p.dead && p.ends != nil {
		p.ends()
	}
	p.dead = true
}

// wake queues a workload, once.
func (p *process) wake(key kube.Key) {
	if p.queued[key] || p.dead {
		return
	}
	if len(p.queued) == 0 {
		p.after(time.Millisecond, p.work)
	}
	p.queued[key] = true
}

// read is an object as the process reads it.
func (p *process) read(o client.Object) client.Object {
	o = salted(o, p.salt)
	if !p.reckless {
		return o
	}
	o = o.DeepCopyObject().(client.Object)
	for _, gate := range []string{settings.Hold, settings.Window, settings.After, settings.First, settings.MaxRolling, settings.Quiet} {
		delete(o.GetAnnotations(), gate)
	}
	return o
}

// Reread is the workload as the server has it now.
func (p *process) Reread(ctx context.Context, w *kube.Workload) (*kube.Workload, error) {
	o := p.kind.NewObject()
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: w.Key.Namespace, Name: w.Key.Name}, o); err != nil {
		return nil, err
	}
	return kube.SlimWorkload(p.kind, p.read(o), settings.Native{})
}

// switches reads the kill switch, if the ConfigMap is it, or one that is listed. It wakes all
// workloads.
func (p *process) switches(o client.Object, gone bool) {
	config, ok := o.(*corev1.ConfigMap)
	if !ok || p.reckless || config.Name != settings.StopName && config.Name != "" {
		return
	}
	p.stop = settings.ParseStop(config.Data, !gone)
	p.workloads.Each(func(w *kube.Workload) { p.wake(w.Key) })
}

// wakeUsers queues the workloads of a namespace that use a source, or all of them.
func (p *process) wakeUsers(namespace string, source input.ID) {
	p.workloads.EachIn(namespace, func(w *kube.Workload) {
		if joined, _ := p.Workload(w.Key); source == (input.ID{}) || uses(joined, source) {
			p.wake(w.Key)
		}
	})
}

// work is one turn of the only worker. The seed chooses which workload is next.
func (p *process) work() {
	switch {
	case p.dead:
		return
	case p.busy:
		p.after(time.Second, p.work)
		return
	}
	waiting, next := slices.SortedFunc(maps.Keys(p.queued), func(a, b kube.Key) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	}), 0
	if len(waiting) > 1 {
		next = p.random.IntN(len(waiting))
		p.after(time.Millisecond, p.work)
	}
	delete(p.queued, waiting[next])
	p.reconcile(waiting[next])
}

func (p *process) reconcile(key kube.Key) {
	result, err := p.loop.Reconcile(context.Background(), key)
	switch {
	case p.dead:
	case err != nil:
		p.log("error: " + err.Error())
		p.wakeAfter(key, time.Second)
	case result.RequeueAfter > 0:
		p.wakeAfter(key, result.RequeueAfter)
	}
}

// wakeAfter wakes a workload later. The earliest time counts, as in a queue of the product.
func (p *process) wakeAfter(key kube.Key, d time.Duration) {
	at := time.Now().Add(d)
	if before, waits := p.later[key]; waits && !before.After(at) {
		return
	}
	p.later[key] = at
	p.after(d, func() {
		if p.later[key].Equal(at) {
			delete(p.later, key)
			p.wake(key)
		}
	})
}

// Await wakes the workload with the next change that its controller notes, and AwaitHealth with
// the next one of its health.
func (p *process) Await(w *kube.Workload)       { p.await(w, false) }
func (p *process) AwaitHealth(w *kube.Workload) { p.await(w, true) }

func (p *process) await(w *kube.Workload, health bool) {
	p.awaited[w.Key] = health
	if now, ok := p.Workload(w.Key); ok && !now.SameProgress(w) {
		delete(p.awaited, w.Key)
		p.wake(w.Key)
	}
}

func (p *process) seen(old, now *kube.Workload) {
	if health, awaited := p.awaited[now.Key]; awaited && !now.SameProgress(old) && (!health || !now.SameHealth(old)) {
		delete(p.awaited, now.Key)
		p.wake(now.Key)
	}
}

func (p *process) Announce(announce.Event) {}

// Move patches as the product does. A process that is to be killed then learns nothing of it.
func (p *process) RollOut(ctx context.Context, w *kube.Workload, order input.Order) (kube.RolledOut, error) {
	patcher := patcher.NewPatcher(p.client, patcher.AsAnnotation)
	patcher.Installation = installation
	moved, err := patcher.RollOut(ctx, w, order)
	if err == nil && p.armed {
		p.kill()
	}
	if err == nil && p.loses {
		p.loses = false
		return kube.RolledOut{}, errors.New("http2: client connection lost")
	}
	return moved, err
}

func (p *process) Put(k kube.Key, e record.Entry) error {
	text, err := e.Encode()
	put(p, &p.entries, k, &text)
	return err
}

func (p *process) Forget(k kube.Key) { put(p, &p.entries, k, nil) }

func (p *process) AddFailure(c input.Change, id string, now time.Time) (f record.Failure, added bool, full string) {
	f, added = p.Failure(c).With(id, now)
	if added {
		text := f.Encode()
		put(p, &p.failures, record.Published(c), &text)
	}
	return f, added, ""
}

func (p *process) PutSeries(of input.Change, s record.Series) (full string) {
	text := new(s.Version + " " + s.Encode())
	if s == (record.Series{}) {
		text = nil
	}
	put(p, &p.series, of, text)
	return ""
}

func (p *process) PutNow(context.Context, kube.Key, record.Entry) (time.Time, error) {
	panic("no history evicts pods")
}

// put writes to a part of the record, which is on disk within a second.
func put[K comparable](p *process, t *texts[K], k K, text *string) {
	if p.dead {
		return
	}
	if len(t.memory) == 0 {
		p.after(time.Duration(p.random.IntN(1000))*time.Millisecond, func() {
			if !p.dead {
				t.flush()
			}
		})
	}
	t.memory[k] = text
}
