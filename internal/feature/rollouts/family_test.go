package rollouts_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// madeUp is a family of inputs that nobody has thought of: each workload has one, whose
// version somebody sets.
type madeUp struct {
	id input.ID
	// live says whether pods that start load it by themselves.
	live bool

	mu      sync.Mutex
	version fingerprint.Version
	bars    []input.Bar
	wake    func(kube.Key)
}

func (m *madeUp) Kinds() []input.Kind { return []input.Kind{m.id.Kind} }
func (m *madeUp) Drop(kube.Key)       {}

func (m *madeUp) Wake(f func(kube.Key)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake = f
}

func (m *madeUp) Assess(_ context.Context, _ *kube.Workload, _ settings.Intent, given record.Entry, _ kube.AskPast) (input.Assessment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := input.Finding{
		ID: m.id, Live: m.live, Bars: m.bars, Reason: input.InStep,
		Versions: input.Versions{Delivered: given.Inputs[m.id].Version, Current: m.version, Shows: input.Mark{Digest: m.version.Short(), Pinned: !m.live}},
	}
	switch {
	case f.Delivered.IsZero():
		f.Standing, f.Reason = input.Record, input.Baseline
	case f.Delivered != f.Current:
		f.Standing, f.Reason = input.Due, input.Changed
	}
	return input.Assessment{Findings: []input.Finding{f}}, nil
}

// set gives the input another version and wakes a workload, as a schedule would.
func (m *madeUp) set(digit string, bars ...input.Bar) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version, m.bars = versionOf(digit), bars
}

func (m *madeUp) wakeUp(t *testing.T, key kube.Key) {
	t.Helper()
	m.mu.Lock()
	wake := m.wake
	m.mu.Unlock()
	if wake == nil {
		t.Fatal("nobody listens to the family")
	}
	wake(key)
}

func versionOf(digit string) fingerprint.Version {
	return fingerprint.Version{Basis: "sha256", Sum: strings.Repeat(digit, 64)}
}

// house is the loop with made-up families on a real API server.
type house struct {
	*testkit.World
	records *ledger.Records
	key     kube.Key
}

func newHouse(t *testing.T, families ...*madeUp) *house {
	t.Helper()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	c := testkit.NewClient(t, w.Cluster.Kubeconfig())
	words := settings.Native{}
	quietly := func(mirror.Sync) {}
	cache := cluster.NewCache(c, cluster.CacheOptions{
		Kinds: []kube.Kind{kube.Deployment()}, Sources: []input.Kind{input.KindConfigMap}, Namespaces: []string{w.Namespace},
		Vocabulary: words, Now: time.Now, Report: quietly,
	})
	h := &house{World: w, key: kube.Key{GroupKind: kube.Deployment().GroupKind(), Namespace: w.Namespace, Name: testkit.Web}}
	h.records = ledger.New(c, ledger.Options{Namespace: w.Own, Name: "state", Now: time.Now, Report: func(err error) { t.Error(err) }, Status: quietly})
	d := rollouts.Dependencies{
		Vocabulary: words, Cluster: cache, Records: h.records, Roller: patcher.NewPatcher(c, patcher.AsAnnotation),
		Announcer: announce.Several{}, Metrics: prometheus.NewRegistry(), Log: logr.Discard(), Now: time.Now,
	}
	var wakers []cluster.Waker
	for _, f := range families {
		d.Families = append(d.Families, f)
		wakers = append(wakers, f)
	}
	loop := rollouts.New(rollouts.DefaultOptions(), d)
	queue := workqueue.NewTypedDelayingQueue[kube.Key]()
	testkit.RunInBackground(t, h.records.Watch)
	testkit.RunInBackground(t, func(ctx context.Context) {
		cache.Run(ctx, kube.Hashers{Kinds: map[input.Kind]fingerprint.Hasher{input.KindConfigMap: {}}})
	})
	testkit.RunInBackground(t, func(ctx context.Context) { cluster.Feed(ctx, cache, h.records, queue.Add, wakers...) })
	testkit.RunInBackground(t, func(ctx context.Context) {
		stop := context.AfterFunc(ctx, queue.ShutDown)
		defer stop()
		for {
			key, ended := queue.Get()
			if ended {
				return
			}
			result, err := loop.Reconcile(ctx, key)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			if result.RequeueAfter > 0 {
				queue.AddAfter(key, result.RequeueAfter)
			}
			queue.Done(key)
		}
	})
	return h
}

// awaitGiven waits until an input is on record at a version.
func (h *house) awaitGiven(t *testing.T, id input.ID, digit string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		e, _ := h.records.Entry(h.key)
		return e.Inputs[id].Version == versionOf(digit), fmt.Sprintf("%s is on record as %+v", id, e.Inputs)
	})
}

func (h *house) awaitShown(t *testing.T, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		shown := h.Shown(t, testkit.Web)
		return shown == want, fmt.Sprintf("the template shows %q, want %q", shown, want)
	})
}

// TestMadeUpFamily: a family that the loop knows nothing of wakes a workload, is due,
// is patched together with another family, and is barred without holding that one.
func TestMadeUpFamily(t *testing.T) {
	t.Parallel()
	image := &madeUp{id: input.Image("web")}
	config := &madeUp{id: input.ConfigMap("made-up"), live: true}
	image.set("1")
	config.set("1")
	h := newHouse(t, image, config)
	h.awaitGiven(t, image.id, "1")
	h.awaitGiven(t, config.id, "1")

	image.set("2")
	image.wakeUp(t, h.key)
	h.awaitShown(t, "configmap/made-up~1111111111,image/web=2222222222")
	h.awaitGiven(t, image.id, "2")

	// A barred image stays as the template has it; the other family goes on.
	image.set("3", input.Bar{Reason: input.Held, By: "audit"})
	config.set("4")
	config.wakeUp(t, h.key)
	h.awaitShown(t, "configmap/made-up~4444444444,image/web=2222222222")
	h.awaitGiven(t, config.id, "4")
	h.awaitGiven(t, image.id, "2")

	image.set("3")
	image.wakeUp(t, h.key)
	h.awaitShown(t, "configmap/made-up~4444444444,image/web=3333333333")

	// A barred input that every pod loads holds the whole workload.
	config.set("5", input.Bar{Reason: input.Held, By: "audit"})
	image.set("6")
	image.wakeUp(t, h.key)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		e, ok := h.records.Entry(h.key)
		return !e.PendingSince.IsZero(), fmt.Sprintf("the change isn't pending; the entry on record (present: %t) is %+v", ok, e)
	})
	if shown := h.Shown(t, testkit.Web); !strings.Contains(shown, "image/web=3333333333") {
		t.Errorf("the template shows %q although a live input is barred", shown)
	}
	config.set("5")
	config.wakeUp(t, h.key)
	h.awaitShown(t, "configmap/made-up~5555555555,image/web=6666666666")
}
