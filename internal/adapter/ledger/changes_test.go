package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// failedWith is what is on record of a version with which workloads failed.
func failedWith(version string, ids ...string) record.Change {
	c := record.Change{Version: version, Level: 1}
	for _, id := range ids {
		c = c.WithFailed(input.Change{Version: version}, id, time.Date(2026, 11, 15, 3, 4, 5, 0, time.UTC))
	}
	return c
}

func putChange(t *testing.T, r *Records, c input.Change, known record.Change) {
	t.Helper()
	if full := r.PutChange(c, known); full != "" {
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
		{Namespace: long[:63], ID: input.ConfigMap(long)},
		{Namespace: long[:63], ID: input.ConfigMap(long[:252])},
	}
}

// TestChangesAreRead: a later process and a command read each input as it was put. It is no
// workload, and no program takes it for an entry.
func TestChangesAreRead(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, _ := newRecords(t, w)
	want := map[input.Change]record.Change{}
	for i, c := range subjects() {
		want[c] = failedWith(fmt.Sprintf("%010d", i), fmt.Sprintf("Deployment.apps/shop/w%d", i))
		c.Version = "77ab01c9de" // whichever it is
		putChange(t, r, c, want[c.Subject()])
	}
	if diff := cmp.Diff(want, r.Changes()); diff != "" {
		t.Errorf("before they are written (-want +got):\n%s", diff)
	}
	r.flush(t.Context())

	later, problems := newRecords(t, w)
	watchRecords(t, later)
	if diff := cmp.Diff(want, later.Changes()); diff != "" {
		t.Errorf("a later process (-want +got):\n%s", diff)
	}
	at, reading := client.ObjectKey{Namespace: w.Own, Name: "state"}, NewReading(w.Client, w.Own, "state")
	for c, known := range want {
		if got, ok := later.Change(c); !ok || !got.Equal(known) {
			t.Errorf("%s in %q is %+v, %t", c, c.Namespace, got, ok)
		}
		if got, ok, err := reading.Change(t.Context(), c); !ok || err != nil || !got.Equal(known) {
			t.Errorf("a command reads %s in %q as %+v, %t, %v", c, c.Namespace, got, ok, err)
		}
	}
	if got, ok, err := reading.Change(t.Context(), input.Change{Namespace: "shop", ID: input.ConfigMap("other")}); ok || err != nil {
		t.Errorf("an input that isn't on record is %+v, error %v", got, err)
	}
	for namespace, size := range map[string]int{"": len(want), "shop": 4 + 3, "other": 3} {
		all, err := ReadAll(t.Context(), w.Client, at, namespace)
		if err != nil || len(all.Changes) != size || len(all.Entries) > 0 {
			t.Errorf("a command reads %d inputs and %d workloads in namespace %q, want %d; error %v", len(all.Changes), len(all.Entries), namespace, size, err)
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

// TestChangesAreWrittenInBatches: a source that keeps changing costs one write of its shard at a
// time, together with everything else there.
func TestChangesAreWrittenInBatches(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, p := newRecords(t, w)
	for level := range 5 {
		for i := range 300 {
			put(t, r, deploymentKey("shop", fmt.Sprint("w", i)), fmt.Sprint(level))
			putChange(t, r, input.Change{Namespace: "shop", ID: input.Secret(fmt.Sprint("s", i))}, record.Change{Version: fmt.Sprint(level), Level: level + 5})
		}
	}
	r.flush(t.Context())
	writes := r.Writes()
	if writes.Succeeded > shardCount || writes.Succeeded == 0 || writes.Failed != 0 {
		t.Errorf("%+v writes (%s), want at most one a shard, %d", writes, p.text(), shardCount)
	}
	for i := range 300 {
		putChange(t, r, input.Change{Namespace: "shop", ID: input.Secret(fmt.Sprint("s", i))}, record.Change{Version: "4", Level: 9})
	}
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
	putChange(t, one, app, failedWith(app.Version, a.ID()))
	one.flush(t.Context())
	putChange(t, two, app, failedWith(app.Version, b.ID()))
	two.flush(t.Context())
	if got, _ := two.Change(app); !got.Failure(app).HasFailed(a.ID()) || got.Failure(app).HasFailed(b.ID()) || told.Times(b) != 1 || told.Times(a) != 0 {
		t.Fatalf("it is %+v; woken: a %d times, b %d times; want the other writer's, and b woken", got, told.Times(a), told.Times(b))
	}
	known, _ := two.Change(app)
	putChange(t, two, app, known.WithFailed(app, b.ID(), time.Now()))
	two.flush(t.Context())
	reader, _ := newRecords(t, w)
	watchRecords(t, reader)
	if got, ok := reader.Change(app); !ok || !got.Failure(app).HasFailed(a.ID()) || !got.Failure(app).HasFailed(b.ID()) || problems.text() != "<nil>" {
		t.Errorf("it is %+v, %t, problems %s; want both", got, ok, problems.text())
	}
}

// TestChangesOfAFullNamespace: one namespace has its share of the record, and says so when that is
// taken. What is on record can still change and end.
func TestChangesOfAFullNamespace(t *testing.T) {
	t.Parallel()
	r := inMemory()
	s := r.shardWith(changeKey(input.Change{Namespace: "greedy", ID: input.Secret("s0")}))
	full, known, last, beyond := "", failedWith("77ab01c9de", strings.Repeat("i", 60), strings.Repeat("j", 60)), input.Change{}, input.Change{}
	for i := 0; full == ""; i++ {
		c := input.Change{Namespace: "greedy", ID: input.Secret(fmt.Sprint("s", i))}
		if r.shardWith(changeKey(c)) != s {
			continue
		}
		if full = r.PutChange(c, known); full == "" {
			last = c
		}
		beyond = c
	}
	if got, ok := r.Change(beyond); !ok || !got.Equal(known) {
		t.Errorf("a stop without room is forgotten: %+v", got)
	}
	bound := forKnown().namespace
	if size := s.size("greedy"); size > bound || size < bound-1000 || !strings.Contains(full, "namespace greedy") || !strings.Contains(full, s.name) {
		t.Errorf("%d bytes are taken of %d, the next is told %q", size, bound, full)
	}
	if full := r.PutChange(last, failedWith("0b1c2d3e4f")); full != "" {
		t.Errorf("one that is on record is told %q", full)
	}
	other := input.Change{Namespace: "modest"}
	for i := 0; other.ID.Name == "" || r.shardWith(changeKey(other)) != s; i++ {
		other.ID = input.Secret(fmt.Sprint("s", i))
	}
	if full := r.PutChange(other, known); full != "" {
		t.Errorf("another namespace is told %q", full)
	}
	for c := range r.Changes() {
		r.DropChange(c)
	}
	if s.taken.all != 0 || len(r.Changes()) != 0 {
		t.Errorf("%d bytes are taken after all were dropped", s.taken.all)
	}
}

// TestSweptChanges: what is over leaves the record, and nothing else does.
func TestSweptChanges(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, _ := newRecords(t, w)
	watchRecords(t, r)
	kept, gone := map[input.Change]record.Change{}, input.Change{Namespace: "gone", ID: input.ConfigMap("app")}
	for _, c := range subjects() {
		if c.Namespace != "" {
			c.Namespace = w.Namespace
		}
		kept[c] = failedWith("77ab01c9de", "Deployment.apps/shop/a")
		putChange(t, r, c, kept[c])
	}
	putChange(t, r, gone, failedWith("77ab01c9de"))
	odd, torn := changeKey(input.Change{Namespace: w.Namespace, ID: input.ConfigMap("odd")}), "configmap/odd"
	r.shardWith(odd).set(odd, &torn)
	r.flush(t.Context())
	for range 2 {
		if err := r.Sweep(t.Context(), func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		r.flush(t.Context())
	}
	if diff := cmp.Diff(kept, r.Changes()); diff != "" {
		t.Errorf("after a namespace is gone (-want +got):\n%s", diff)
	}
	over, again := input.Change{Namespace: w.Namespace, ID: input.Secret("app")}, input.Change{Namespace: w.Namespace, ID: input.ConfigMap("app")}
	r.SweepChanges(func(c input.Change, known record.Change) bool {
		if c == again {
			c.Version = known.Version
			putChange(t, r, c, known.WithFailed(c, "Deployment.apps/shop/b", time.Now()))
		}
		return c == over || c.Subject() == again
	})
	r.flush(t.Context())
	delete(kept, over)
	if got := r.Changes(); len(got) != len(kept) || len(got[again].Failures[0].On) != 2 {
		t.Errorf("left are %v, want %v, and the one that failed again", got, kept)
	}
	if _, all := keysOf(t, w, ""); all != len(kept) {
		t.Errorf("%d keys are left, want %d; the unreadable one is to go", all, len(kept))
	}
}
