package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// problems collects what was reported.
type problems struct {
	mu  sync.Mutex
	all []error
}

func (p *problems) report(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, err)
}

func (p *problems) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(errors.Join(p.all...))
}

// newRecords is a record in the world's own namespace that nobody watches yet.
func newRecords(t *testing.T, w *testkit.World) (*Records, *problems) {
	t.Helper()
	p := &problems{}
	return New(testkit.NewClient(t, w.Cluster.Kubeconfig()), Options{
		Namespace: w.Own, Name: "state", Now: time.Now, Report: p.report, Status: func(mirror.Sync) {},
	}), p
}

// watchRecords follows the record until the test ends and waits for its first list.
func watchRecords(t *testing.T, r *Records) {
	t.Helper()
	testkit.RunInBackground(t, r.Watch)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { return r.Status().Works(), fmt.Sprintf("%+v", r.Status()) })
}

func deploymentKey(namespace, name string) kube.Key {
	return kube.Key{GroupKind: kube.Deployment().GroupKind(), Namespace: namespace, Name: name}
}

// entryOf is an entry of a workload that was given one version.
func entryOf(key kube.Key, version string) record.Entry {
	return record.Entry{ID: key.ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{
		input.ConfigMap("app"): {Version: fingerprint.Version{Basis: "1:*", Sum: strings.Repeat(version, 32)}},
	}}
}

func put(t *testing.T, r *Records, key kube.Key, version string) {
	t.Helper()
	if err := r.Put(key, entryOf(key, version)); err != nil {
		t.Fatal(err)
	}
}

// checkEntry fails unless the record says that the workload was given a version.
func checkEntry(t *testing.T, r *Records, key kube.Key, version string) {
	t.Helper()
	if got, ok := r.Entry(key); !ok || !got.Equal(entryOf(key, version)) {
		t.Errorf("the record of %s is %+v, %t; want version %s", key, got, ok, version)
	}
}

func shardsOf(t *testing.T, w *testkit.World) []corev1.ConfigMap {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := w.Client.List(t.Context(), list, client.InNamespace(w.Own), client.MatchingLabels{settings.StateLabel: "true"}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// neighbours are two workloads of one shard.
func neighbours(r *Records) (a, b kube.Key) {
	a = deploymentKey("shop", "a")
	for i := 0; ; i++ {
		b = deploymentKey("shop", fmt.Sprint("b", i))
		if r.shardOf(a) == r.shardOf(b) {
			return a, b
		}
	}
}

// TestKnownRecordsAreAdopted: as soon as the list of the record counts as complete,
// what is on record is found. Whoever decided before would take a workload for one
// that was never given anything.
func TestKnownRecordsAreAdopted(t *testing.T) {
	t.Parallel()
	key := deploymentKey("shop", "a")
	text, err := entryOf(key, "1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	known := false
	var r *Records
	r = New(nil, Options{Name: "state", Now: time.Now, Report: func(err error) { t.Error(err) }, Status: func(s mirror.Sync) {
		known = s.Works()
		checkEntry(t, r, key, "1")
	}})
	shard, at := configMap(r.shardOf(key).name, map[string]string{storageKey(key): text}), time.Unix(1_800_000_000, 0)
	shard.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: kube.FieldManager, Time: &metav1.Time{Time: at}}}
	if err := r.mirror.Replace([]any{shard}, "1"); err != nil || !known {
		t.Errorf("the list counts as complete: %t, error %v", known, err)
	}
	if e, _ := r.Entry(key); !e.WrittenAt.Equal(at) || e.Version != 1 {
		t.Errorf("the entry was written at %s with version %d, want %s and 1", e.WrittenAt, e.Version, at)
	}
	put(t, r, key, "2")
	if e, _ := r.Entry(key); !e.WrittenAt.IsZero() || e.Version != 0 {
		t.Errorf("an entry that isn't written yet was written at %s with version %d", e.WrittenAt, e.Version)
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Data: data}
}

func TestRecordsAreWrittenInBatches(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, p := newRecords(t, w)
	const workloads = 300
	for version := range 3 {
		for i := range workloads {
			put(t, r, deploymentKey("shop", fmt.Sprint("w", i)), fmt.Sprint(version))
		}
	}
	r.flush(t.Context())
	writes := r.Writes()
	if writes.Succeeded > shardCount || writes.Succeeded == 0 || writes.Failed != 0 {
		t.Errorf("%+v writes (%s), want at most one a shard, %d", writes, p.text(), shardCount)
	}
	r.flush(t.Context())
	if again := r.Writes(); again != writes {
		t.Errorf("%+v writes after nothing was changed, %+v before", again, writes)
	}

	reader, _ := newRecords(t, w)
	watchRecords(t, reader)
	for i := range workloads {
		checkEntry(t, reader, deploymentKey("shop", fmt.Sprint("w", i)), "2")
	}
	if got := len(reader.Keys()); got != workloads {
		t.Errorf("%d workloads on record, want %d", got, workloads)
	}
}

// TestScopesBeginOnce: from when on a kind is followed is remembered from its first
// beginning on, and is no workload.
func TestScopesBeginOnce(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	first, _ := newRecords(t, w)
	newest := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	everywhere := cluster.Scope{GroupKind: kube.Deployment().GroupKind()}
	shop := cluster.Scope{GroupKind: kube.Deployment().GroupKind(), Namespace: "shop"}
	empty := cluster.Scope{GroupKind: kube.DaemonSet().GroupKind(), Namespace: "shop"}
	if since, begun := first.Since(everywhere); begun {
		t.Errorf("a scope that nobody follows is followed since %s", since)
	}
	first.Begin(everywhere, newest)
	first.Begin(empty, time.Time{})
	first.flush(t.Context())

	second, problems := newRecords(t, w)
	watchRecords(t, second)
	second.Begin(everywhere, newest.Add(time.Hour))
	for scope, want := range map[cluster.Scope]time.Time{everywhere: newest, empty: {}} {
		if since, begun := second.Since(scope); !begun || !since.Equal(want) {
			t.Errorf("%v is followed: %t, since %s, want since %s", scope, begun, since, want)
		}
	}
	if since, begun := second.Since(shop); begun {
		t.Errorf("one namespace is followed since %s because all were", since)
	}
	if keys := second.Keys(); len(keys) != 0 || problems.text() != "<nil>" {
		t.Errorf("scopes are taken for the workloads %v, with problems %q", keys, problems.text())
	}
}

func TestRecordsOfTwoWriters(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	one, _ := newRecords(t, w)
	two, problems := newRecords(t, w)
	a, b := neighbours(one)
	var told testkit.Tally[kube.Key]
	two.Wake(told.Note)

	// Neither watches, so the second knows nothing of what the first wrote.
	put(t, one, a, "1")
	one.flush(t.Context())
	put(t, two, a, "2")
	put(t, two, b, "2")
	two.flush(t.Context())
	checkEntry(t, two, a, "1")
	if told.Times(a) != 1 || told.Times(b) != 0 {
		t.Errorf("woken: a %d times, b %d times; want the overruled one only", told.Times(a), told.Times(b))
	}
	two.flush(t.Context())
	checkEntry(t, two, b, "2")

	// Now the first one is behind: its patch conflicts.
	put(t, one, a, "3")
	one.flush(t.Context())
	one.flush(t.Context())
	checkEntry(t, one, a, "3")
	checkEntry(t, one, b, "2")

	reader, _ := newRecords(t, w)
	watchRecords(t, reader)
	checkEntry(t, reader, a, "3")
	checkEntry(t, reader, b, "2")
	if text := problems.text(); text != "<nil>" {
		t.Errorf("a conflict is no problem: %s", text)
	}
	if writes := two.Writes(); writes != (Writes{Succeeded: 1, Conflicted: 1}) {
		t.Errorf("%+v writes, want that of b, and that which met another writer's", writes)
	}
}

// TestRecordsAfterARestore: an API server that was restored from a backup counts from
// a lower number on. What it holds is what counts all the same.
func TestRecordsAfterARestore(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, problems := newRecords(t, w)
	a, b := neighbours(r)
	put(t, r, a, "1")
	r.flush(t.Context())
	r.shardOf(a).resourceVersion += "000000"
	put(t, r, b, "1")
	r.flush(t.Context())
	r.flush(t.Context())
	if writes := r.Writes(); writes != (Writes{Succeeded: 2, Conflicted: 1}) {
		t.Errorf("%+v writes, want the second one after a conflict", writes)
	}
	if shards := shardsOf(t, w); len(shards) != 1 || len(shards[0].Data) != 2 {
		t.Errorf("the record is %v, problems %s; want both workloads", shards, problems.text())
	}
}

func TestRecordsOverruledByARemoval(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	one, _ := newRecords(t, w)
	two, _ := newRecords(t, w)
	a, b := neighbours(one)
	put(t, one, a, "1")
	put(t, one, b, "1")
	one.flush(t.Context())
	watchRecords(t, two)
	var told testkit.Tally[kube.Key]
	two.Wake(told.Note)

	put(t, two, a, "2")
	one.Forget(a)
	one.flush(t.Context())
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		e, ok := two.Entry(a)
		return told.Times(a) > 0, fmt.Sprintf("another process removed the entry, and the workload isn't woken; its entry (present: %t) is %+v", ok, e)
	})
	if e, ok := two.Entry(a); ok {
		t.Errorf("the removed entry is %+v", e)
	}
	checkEntry(t, two, b, "1")
}

func TestRecordsSurviveTheirDeletion(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, problems := newRecords(t, w)
	watchRecords(t, r)
	testkit.RunInBackground(t, func(ctx context.Context) { _ = r.Run(ctx) })
	a, b := neighbours(r)
	put(t, r, a, "1")
	put(t, r, b, "1")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		n := len(shardsOf(t, w))
		return n == 1, fmt.Sprintf("the record consists of %d ConfigMaps, want one; problems: %s", n, problems.text())
	})
	for _, shard := range shardsOf(t, w) {
		if err := w.Client.Delete(t.Context(), &shard); err != nil {
			t.Fatal(err)
		}
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		shards := shardsOf(t, w)
		return len(shards) == 1 && len(shards[0].Data) == 2, fmt.Sprintf("the deleted record is not written again: %d shards", len(shards))
	})
	checkEntry(t, r, a, "1")
}

func TestRecordsKeepWhatTheyCannotRead(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, problems := newRecords(t, w)
	a, b := neighbours(r)
	const garbage = `{"v":2,"in":"what ever"}`
	readable, err := entryOf(b, "1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	w.Create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Own, Name: r.shardOf(a).name, Labels: map[string]string{settings.StateLabel: "true"}},
		Data:       map[string]string{storageKey(a): garbage, storageKey(b): readable},
	})
	watchRecords(t, r)
	if e, ok := r.Entry(a); !ok || !e.Lost || len(e.Inputs) > 0 {
		t.Errorf("garbage is read as %+v, %t; want an entry that was lost", e, ok)
	}
	checkEntry(t, r, b, "1")
	if text := problems.text(); !strings.Contains(text, a.String()) || !strings.Contains(text, "decode entry") {
		t.Errorf("the problem is reported as %q, want the workload and the cause", text)
	}

	put(t, r, a, "2")
	r.flush(t.Context())
	checkEntry(t, r, a, "2")
	data := shardsOf(t, w)[0].Data
	if data["unreadable."+storageKey(a)] != garbage || len(data) != 3 {
		t.Errorf("the shard has %q, want the unreadable text kept aside", data)
	}
}

func TestRecordsRefuseAForeignConfigMap(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, problems := newRecords(t, w)
	a, _ := neighbours(r)
	foreign := testkit.ConfigMap(r.shardOf(a).name, "theirs", "1")
	foreign.Namespace = w.Own
	w.Create(t, foreign)
	put(t, r, a, "1")
	r.flush(t.Context())
	text := problems.text()
	for _, want := range []string{foreign.Name, "another ConfigMap", settings.StateLabel} {
		if !strings.Contains(text, want) {
			t.Errorf("the problem %q does not say %q", text, want)
		}
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || len(foreign.Data) != 1 {
		t.Errorf("the foreign ConfigMap has %v, error %v", foreign.Data, err)
	}
	checkEntry(t, r, a, "1") // still known, and tried again
}

func TestStorageKeysFitAConfigMap(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 253)
	a, b := deploymentKey(long[:63], long), deploymentKey(long[:63], long[:252])
	if storageKey(a) == storageKey(b) || len("unreadable."+storageKey(a)) > 253 {
		t.Errorf("keys %q and %q", storageKey(a), storageKey(b))
	}
}
