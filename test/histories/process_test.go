package histories_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// process is one run of Lockstep: the product's loop, family, mirrors and patches, between
// watches and a record that are simulated. What it has not written down when it is killed
// is lost.
type process struct {
	*agenda
	server *server
	kind   kube.Kind
	salt   string

	workloads *mirror.Mirror[*kube.Workload]
	sources   map[input.Kind]*mirror.Mirror[*kube.Source]
	watches   map[string]*watch
	loop      *rollouts.Reconciler
	client    client.Client

	// disk is the record as it is written, memory what was put there since.
	disk   map[kube.Key]string
	memory map[kube.Key]*string
	// read is the text that was decoded last. All looks share its entry, as those of the product
	// do, and copied shows whether one of them has changed it.
	read struct {
		text          string
		entry, copied record.Entry
	}
	// began is since when workloads are followed.
	began time.Time

	dead, armed, queued, awaited bool
	// busy is true while its workers have other work, so that the queue waits. late is how
	// much later the watches of sources are than that of the workload.
	busy bool
	late time.Duration
	// last is the reason of the last decision, and log all that it has said.
	last  string
	log   func(string)
	tells bool
	// digests are made with the key of the installation.
	digests kube.Hashers
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

// key is the only workload.
func (p *process) key() kube.Key {
	return kube.Key{GroupKind: p.kind.GroupKind(), Namespace: namespace, Name: "web"}
}

func hashers() kube.Hashers {
	return kube.Hashers{Kinds: map[input.Kind]fingerprint.Hasher{
		input.KindConfigMap: {}, input.KindSecret: fingerprint.NewKeyedHasher([]byte("installation key")),
	}}
}

// start runs Lockstep from what is on disk, and lists what there is.
func start(p *process) *process {
	s := p.server
	p.memory, p.sources, p.watches, p.client = map[kube.Key]*string{}, map[input.Kind]*mirror.Mirror[*kube.Source]{}, map[string]*watch{}, caller{server: s, manager: kube.FieldManager, salt: p.salt}
	words := settings.Native{Defaults: settings.Defaults{Quiet: quiet}}
	p.workloads = mirror.New(mirror.Options[*kube.Workload]{
		Slim:    func(o any) (*kube.Workload, error) { return kube.SlimWorkload(p.kind, o, words) },
		Changed: func(_, _ *kube.Workload) { p.wake() }, Seen: p.seen, Now: time.Now,
	})
	workloads := nameOf(p.kind.NewObject(), "")
	p.watches[workloads] = follows(p.workloads, p, func(o client.Object) bool { return nameOf(o, "") == workloads })
	for kind, object := range map[input.Kind]client.Object{input.KindConfigMap: &corev1.ConfigMap{}, input.KindSecret: &corev1.Secret{}} {
		p.sources[kind] = mirror.New(mirror.Options[*kube.Source]{
			Slim:    func(o any) (*kube.Source, error) { return p.digests.Slim(o, words) },
			Changed: func(_, _ *kube.Source) { p.wake() }, Now: time.Now,
		})
		p.watches[nameOf(object, "")] = follows(p.sources[kind], p, func(o client.Object) bool { return nameOf(o, "") == nameOf(object, "") })
	}
	p.loop = p.newLoop(words)
	for _, w := range p.watches {
		p.must(w.list())
	}
	p.wake()
	return p
}

// follows makes the watch of a mirror.
func follows[T mirror.Slim[T]](m *mirror.Mirror[T], p *process, is func(client.Object) bool) *watch {
	s := p.server
	return &watch{
		deliver: func(o client.Object, gone bool) error {
			if gone {
				return m.Delete(o)
			}
			defer m.UpdateResourceVersion(o.GetResourceVersion())
			return m.Update(salted(o, p.salt))
		},
		list: func() error {
			var all []any
			for _, o := range s.objects {
				if is(o) {
					all = append(all, salted(o, p.salt))
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
	since := func(*kube.Workload, input.Kind) (time.Time, bool) { return p.began, true }
	return rollouts.New(rollouts.Options{Quiet: quiet, MaxDelay: time.Minute, Workers: 1}, rollouts.Dependencies{
		Vocabulary: words, Cluster: p, Records: p, Roller: p, Announcer: p, Revisions: revisions, Installation: "lockstep",
		Families: []rollouts.Family{configs.New(configs.Options{View: p, Since: since})},
		Metrics:  prometheus.NewRegistry(), Now: time.Now,
		Log: logr.New(&decisions{process: p}),
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
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == "reason" {
			l.process.last = fmt.Sprint(values[i+1])
		}
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
	for _, name := range []string{nameOf(&corev1.Secret{}, ""), nameOf(p.kind.NewObject(), ""), nameOf(&corev1.ConfigMap{}, "")} {
		w := p.watches[name]
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

// kill ends the process as it is.
func (p *process) kill() {
	p.dead = true
}

// wake queues the workload, once.
func (p *process) wake() {
	if p.queued || p.dead {
		return
	}
	p.queued = true
	p.after(time.Millisecond, p.reconcile)
}

func (p *process) reconcile() {
	switch {
	case p.dead:
		return
	case p.busy:
		p.after(time.Second, p.reconcile)
		return
	}
	p.queued = false
	result, err := p.loop.Reconcile(context.Background(), p.key())
	switch {
	case p.dead:
	case err != nil:
		p.log("error: " + err.Error())
		p.after(time.Second, p.wake)
	case result.RequeueAfter > 0:
		p.after(result.RequeueAfter, p.wake)
	}
}

// The loop's view of the cluster.

func (p *process) Workload(key kube.Key) (*kube.Workload, bool) {
	return p.workloads.Get(key.Namespace, key.Name)
}

func (p *process) Source(namespace string, id input.ID) (*kube.Source, bool) {
	return p.sources[id.Kind].Get(namespace, id.Name)
}

func (p *process) SourcesMatching(string, settings.Pattern) iter.Seq[input.ID] {
	return func(func(input.ID) bool) {}
}

func (p *process) Namespace(string) (*kube.Namespace, bool) { return nil, false }
func (p *process) Knows(input.Kind, string) bool            { return true }
func (p *process) Lists(kube.Key) bool                      { return true }
func (p *process) KnowsNamespaces() bool                    { return true }
func (p *process) LacksNamespace(string) bool               { return false }
func (p *process) Announce(announce.Event)                  {}

func (p *process) Absent(kind input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return p.digests.Kinds[kind].AbsentVersion(keys)
}

// Await wakes the workload with the next change that its controller notes.
func (p *process) Await(w *kube.Workload) {
	p.awaited = true
	if now, ok := p.Workload(w.Key); ok {
		p.seen(w, now)
	}
}

func (p *process) seen(old, now *kube.Workload) {
	if p.awaited && !now.SameProgress(old) {
		p.awaited = false
		p.wake()
	}
}

// Move patches as the product does. A process that is to be killed then learns nothing of it.
func (p *process) RollOut(ctx context.Context, w *kube.Workload, order input.Order) (kube.RolledOut, error) {
	patcher := patcher.NewPatcher(p.client, patcher.AsAnnotation)
	patcher.Installation = "lockstep"
	moved, err := patcher.RollOut(ctx, w, order)
	if err == nil && p.armed {
		p.kill()
	}
	return moved, err
}

// The record: in the written form, on disk a second later.

func (p *process) Entry(k kube.Key) (record.Entry, bool) {
	text, ok := p.disk[k]
	if put, changed := p.memory[k]; changed {
		if put == nil {
			return record.Entry{}, false
		}
		text, ok = *put, true
	}
	if !ok {
		return record.Entry{}, false
	}
	if text != p.read.text {
		e, err := record.Decode(text)
		p.must(err)
		p.read.text, p.read.entry, p.read.copied = text, e, e.Clone()
	}
	if !p.read.entry.Equal(p.read.copied) {
		panic("a look has changed the entry that others share")
	}
	return p.read.entry, true
}

func (p *process) Put(k kube.Key, e record.Entry) error {
	text, err := e.Encode()
	p.set(k, &text)
	return err
}

func (p *process) Forget(k kube.Key) { p.set(k, nil) }

func (p *process) PutNow(context.Context, kube.Key, record.Entry) (time.Time, error) {
	panic("no history evicts pods")
}

func (p *process) set(k kube.Key, text *string) {
	if p.dead {
		return
	}
	if len(p.memory) == 0 {
		p.after(time.Duration(p.random.IntN(1000))*time.Millisecond, p.flush)
	}
	p.memory[k] = text
}

func (p *process) flush() {
	if p.dead {
		return
	}
	for k, text := range p.memory {
		if text == nil {
			delete(p.disk, k)
		} else {
			p.disk[k] = *text
		}
	}
	p.memory = map[kube.Key]*string{}
}
