package ledger

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/damping"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

var failedAt = time.Date(2026, 11, 15, 3, 4, 5, 0, time.UTC)

// failedOn is what is on record of a version with which workloads failed.
func failedOn(ids ...string) record.Failure { return record.Failure{On: ids, Since: failedAt} }

func addFailure(t *testing.T, r *Records, c input.Change, id string) {
	t.Helper()
	if _, added, full := r.AddFailure(c, id, failedAt); !added || full != "" {
		t.Fatalf("added %t, room %q", added, full)
	}
}

func putSeries(t *testing.T, r *Records, c input.Change, s record.Series) {
	t.Helper()
	if full := r.PutSeries(c, s); full != "" {
		t.Fatal(full)
	}
}

// subjects are inputs of every kind, with names as long as they can be.
func subjects() []input.Change {
	long := strings.Repeat("n", 253)
	return []input.Change{
		{Namespace: "shop", ID: input.ConfigMap("app")},
		{Namespace: "shop", ID: input.Secret("app")},
		{Namespace: "blog", ID: input.ConfigMap("app")},
		{ID: input.ConfigMap("app")},
		{ID: input.Secret("ca.example.com")},
		{Namespace: "shop", ID: input.Image("registry.example:5000/team/web_app")},
		{Namespace: "shop", ID: input.Image("registry.example:5000/team/web_app2")},
		{ID: input.Image("registry.example/base")},
		{Namespace: "shop", ID: input.Image("registry.example/base:>=1.2 <2 of 3")},
		{Namespace: long[:63], ID: input.ConfigMap(long)},
		{Namespace: long[:63], ID: input.ConfigMap(long[:252])},
	}
}

// TestChangesAreRead: a later process and a command read each version and each series as it was put. It is no
// workload, and no program takes it for an entry.
func TestChangesAreRead(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, _ := newRecords(t, w)
	want, series := map[input.Change]record.Failure{}, map[input.Change]record.Series{}
	for i, c := range subjects() {
		series[c] = record.Series{Version: fmt.Sprintf("%010d", i), State: damping.State{Level: i + 5, Last: failedAt}}
		putSeries(t, r, c, series[c])
		for _, c.Version = range []string{"77ab01c9de", fmt.Sprintf("%010d", i)} {
			id := fmt.Sprint("Deployment.apps/shop/w", i, c.Version)
			want[record.Published(c)] = failedOn(id)
			addFailure(t, r, c, id)
		}
	}
	if diff := cmp.Diff(want, r.Failures()); diff != "" {
		t.Errorf("before they are written (-want +got):\n%s", diff)
	}
	r.flush(t.Context())

	later, problems := newRecords(t, w)
	watchRecords(t, later)
	if diff := cmp.Diff(want, later.Failures()); diff != "" {
		t.Errorf("a later process (-want +got):\n%s", diff)
	}
	at, reading := client.ObjectKey{Namespace: w.Own, Name: "state"}, NewReading(w.Client, w.Own, "state")
	for _, c := range subjects() {
		if got, ok := later.Series(c); !ok || got != series[c] {
			t.Errorf("the series of %s in %q is %+v, %t", c, c.Namespace, got, ok)
		}
		c.Version = "77ab01c9de"
		known := want[record.Published(c)]
		if got := later.Failure(c); !cmp.Equal(got, known) {
			t.Errorf("%s in %q is %+v", c, c.Namespace, got)
		}
		if got, err := reading.Failure(t.Context(), c); err != nil || !cmp.Equal(got, known) {
			t.Errorf("a command reads %s in %q as %+v, %v", c, c.Namespace, got, err)
		}
		c.Version = "0123456789"
		if got, err := reading.Failure(t.Context(), c); err != nil || len(got.On) > 0 || len(later.Failure(c).On) > 0 {
			t.Errorf("a version that isn't on record is %+v, error %v", got, err)
		}
	}
	for namespace, size := range map[string]int{"": len(want), "shop": 2 * (5 + 3), "other": 2 * 3} {
		all, err := ReadAll(t.Context(), w.Client, at, namespace)
		if err != nil || len(all.Failures) != size || len(all.Entries) > 0 {
			t.Errorf("a command reads %d versions and %d workloads in namespace %q, want %d; error %v", len(all.Failures), len(all.Entries), namespace, size, err)
		}
	}
	if keys := later.Keys(); len(keys) > 0 || len(later.TooNew()) > 0 || problems.text() != "<nil>" {
		t.Errorf("they are taken for the workloads %v, or too new %v; problems %s", keys, later.TooNew(), problems.text())
	}
	for _, shard := range shardsOf(t, w) {
		for key, text := range shard.Data {
			if wrong := validation.IsConfigMapKey(key); len(wrong) > 0 || len(key) > maxKey {
				t.Errorf("key %s: %v", key, wrong)
			}
			if _, err := record.Decode(text); err == nil || record.IsTooNew(text) {
				t.Errorf("an older program takes %q for an entry", text)
			}
		}
	}
}

// TestFailuresAtTheSameTime: workloads that fail at the same moment are all on record, each added once.
func TestFailuresAtTheSameTime(t *testing.T) {
	t.Parallel()
	for range 50 {
		r, c := inMemory(), input.Change{Namespace: "shop", ID: input.ConfigMap("app"), Version: "77ab01c9de"}
		var added atomic.Int32
		var group sync.WaitGroup
		for i := range 2 * record.MaxFailed {
			group.Go(func() {
				if _, isAdded, _ := r.AddFailure(c, fmt.Sprint("Deployment.apps/shop/w", i/2), failedAt); isAdded {
					added.Add(1)
				}
			})
		}
		group.Wait()
		if got := r.Failure(c).On; len(got) != record.MaxFailed || int(added.Load()) != record.MaxFailed {
			t.Fatalf("on record are %q, and %d were added", got, added.Load())
		}
	}
}

// TestChangesAreWrittenInBatches: a source that keeps changing costs one write of its shard at a
// time, together with everything else there.
func TestChangesAreWrittenInBatches(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, p := newRecords(t, w)
	level := func(level int) {
		for i := range 300 {
			putSeries(t, r, input.Change{Namespace: "shop", ID: input.Secret(fmt.Sprint("s", i))}, record.Series{Version: fmt.Sprint(level), State: damping.State{Level: level + 5, Last: failedAt}})
		}
	}
	for n := range 5 {
		for i := range 300 {
			put(t, r, deploymentKey("shop", fmt.Sprint("w", i)), fmt.Sprint(n))
		}
		level(n)
	}
	r.flush(t.Context())
	writes := r.Writes()
	if writes.Succeeded > shardCount || writes.Succeeded == 0 || writes.Failed != 0 {
		t.Errorf("%+v writes (%s), want at most one a shard, %d", writes, p.text(), shardCount)
	}
	level(4)
	r.flush(t.Context())
	if again := r.Writes(); again != writes {
		t.Errorf("%+v writes after nothing was changed, %+v before", again, writes)
	}
}

// TestChangesOfTwoWriters: during a change of leaders both may note a failure. The workload whose
// failure is overruled is woken, and notes it again.
func TestChangesOfTwoWriters(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	one, _ := newRecords(t, w)
	two, problems := newRecords(t, w)
	app := input.Change{Namespace: "shop", ID: input.ConfigMap("app"), Version: "77ab01c9de"}
	a, b := deploymentKey("shop", "a"), deploymentKey("shop", "b")
	var told testkit.Tally[kube.Key]
	two.Wake(told.Note)
	addFailure(t, one, app, a.ID())
	one.flush(t.Context())
	addFailure(t, two, app, b.ID())
	two.flush(t.Context())
	if got := two.Failure(app); !got.HasFailed(a.ID()) || got.HasFailed(b.ID()) || told.Times(b) != 1 || told.Times(a) != 0 {
		t.Fatalf("it is %+v; woken: a %d times, b %d times; want the other writer's, and b woken", got, told.Times(a), told.Times(b))
	}
	addFailure(t, two, app, b.ID())
	two.flush(t.Context())
	reader, _ := newRecords(t, w)
	watchRecords(t, reader)
	if got := reader.Failure(app); !got.HasFailed(a.ID()) || !got.HasFailed(b.ID()) || problems.text() != "<nil>" {
		t.Errorf("it is %+v, problems %s; want both", got, problems.text())
	}
}

// TestChangesOfAFullNamespace: one namespace has its share of the record, and says so when that is
// taken. What is on record can still change and end.
func TestChangesOfAFullNamespace(t *testing.T) {
	t.Parallel()
	r, id := inMemory(), strings.Repeat("i", 60)
	s := r.shardWith(failureKey(input.Change{Namespace: "greedy", ID: input.Secret("s0"), Version: "77ab01c9de"}))
	named := func(namespace string, i int) input.Change {
		return input.Change{Namespace: namespace, ID: input.Secret(fmt.Sprint("s", i)), Version: "77ab01c9de"}
	}
	full, last, beyond := "", input.Change{}, input.Change{}
	for i := 0; full == ""; i++ {
		c := named("greedy", i)
		if r.shardWith(failureKey(c)) != s {
			continue
		}
		if _, _, full = r.AddFailure(c, id, failedAt); full == "" {
			last = c
		}
		beyond = c
	}
	if got := r.Failure(beyond); !got.HasFailed(id) {
		t.Errorf("a stop without room is forgotten: %+v", got)
	}
	if got := r.Failures()[beyond]; !got.HasFailed(id) {
		t.Errorf("a stop without room isn't listed: %+v", got)
	}
	bound := forKnown().namespace
	if size := s.size("greedy"); size > bound || size < bound-1000 || !strings.Contains(full, "namespace greedy") || !strings.Contains(full, s.name) {
		t.Errorf("%d bytes are taken of %d, the next is told %q", size, bound, full)
	}
	if _, _, full := r.AddFailure(last, "x", failedAt); full != "" && s.size("greedy")+2 < bound {
		t.Errorf("one that is on record is told %q", full)
	}
	other := input.Change{}
	for i := 0; other.IsZero() || r.shardWith(failureKey(other)) != s; i++ {
		other = named("modest", i)
	}
	if _, _, full := r.AddFailure(other, id, failedAt); full != "" {
		t.Errorf("another namespace is told %q", full)
	}
	r.SweepChanges(func(input.Change) bool { return false }, nil)
	if s.taken.all != 0 || len(r.Failures()) != 0 || len(r.unwritten) != 0 {
		t.Errorf("%d bytes are taken after all were swept, and %d are unwritten", s.taken.all, len(r.unwritten))
	}
	c, series := named("greedy", 0), record.Series{Version: "1", State: damping.State{Level: 5, Last: failedAt}}
	putSeries(t, r, c, series)
	if got, ok := r.Series(c); !ok || got != series {
		t.Errorf("the series is %+v", got)
	}
	putSeries(t, r, c, record.Series{})
	if got, ok := r.Series(c); ok {
		t.Errorf("after it ended, the series is %+v", got)
	}
}

// TestSweptChanges: what is over leaves the record, and nothing else does.
func TestSweptChanges(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, _ := newRecords(t, w)
	watchRecords(t, r)
	kept, gone := map[input.Change]record.Failure{}, input.Change{Namespace: "gone", ID: input.ConfigMap("app"), Version: "77ab01c9de"}
	for _, c := range subjects() {
		if c.Namespace != "" {
			c.Namespace = w.Namespace
		}
		c.Version = "77ab01c9de"
		kept[record.Published(c)] = failedOn("Deployment.apps/shop/a")
		if _, _, full := r.AddFailure(c, "Deployment.apps/shop/a", failedAt); full != "" {
			t.Fatal(full)
		}
	}
	addFailure(t, r, gone, "Deployment.apps/gone/a")
	calm, flaps := input.Change{Namespace: w.Namespace, ID: input.ConfigMap("calm")}, input.Change{Namespace: w.Namespace, ID: input.ConfigMap("flaps")}
	putSeries(t, r, calm, record.Series{Version: "1", State: damping.State{Level: 5, Last: failedAt}})
	putSeries(t, r, flaps, record.Series{Version: "1", State: damping.State{Level: 9, Last: failedAt}})
	odd, torn := failureKey(input.Change{Namespace: w.Namespace, ID: input.ConfigMap("odd"), Version: "1"}), "1 of configmap/odd"
	r.shardWith(odd).set(odd, &torn)
	r.flush(t.Context())
	for range 2 {
		if err := r.Sweep(t.Context(), func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		r.flush(t.Context())
	}
	if diff := cmp.Diff(kept, r.Failures()); diff != "" {
		t.Errorf("after a namespace is gone (-want +got):\n%s", diff)
	}
	over := input.Change{Namespace: w.Namespace, ID: input.Secret("app"), Version: "77ab01c9de"}
	again := input.Change{Namespace: w.Namespace, ID: input.ConfigMap("app"), Version: "77ab01c9de"}
	r.SweepChanges(func(c input.Change) bool {
		if c == again {
			addFailure(t, r, c, "Deployment.apps/shop/b")
		}
		return c != over && c != again
	}, func(s record.Series) bool { return s.Level > 5 })
	r.flush(t.Context())
	delete(kept, over)
	if got := r.Failures(); len(got) != len(kept) || len(got[again].On) != 2 {
		t.Errorf("left are %v, want %v, and the one that failed again", got, kept)
	}
	_, isCalm := r.Series(calm)
	if _, flap := r.Series(flaps); isCalm || !flap {
		t.Errorf("on record is a series that is over: %t, one that isn't: %t", isCalm, flap)
	}
	if _, all := keysOf(t, w, ""); all != len(kept)+1 {
		t.Errorf("%d keys are left, want %d; the unreadable one is to go", all, len(kept)+1)
	}
}
