package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// leaveBehind puts on record what a namespace leaves there: its scopes, a workload and
// one that could not be read. One kind has a name that is too long for a key.
func leaveBehind(t *testing.T, r *Records, namespace string) {
	t.Helper()
	long := schema.GroupKind{Group: strings.Repeat("g", 60) + "." + strings.Repeat("h", 60) + "." + strings.Repeat("i", 60), Kind: "Deployment"}
	for _, kind := range []schema.GroupKind{kube.Deployment().GroupKind(), {Kind: "ConfigMap"}, {Kind: "Secret"}, long} {
		r.Begin(cluster.Scope{GroupKind: kind, Namespace: namespace}, time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC))
	}
	put(t, r, deploymentKey(namespace, "web"), "1")
	put(t, r, kube.Key{GroupKind: long, Namespace: namespace, Name: "web"}, "1")
	torn, odd := "{torn", deploymentKey(namespace, "odd")
	r.shardOf(odd).set(storageKey(odd), &torn)
	put(t, r, odd, "1")
}

// keysOf are the keys of the record that belong to a namespace, or to none.
func keysOf(t *testing.T, w *testkit.World, namespace string) (of, all int) {
	t.Helper()
	for _, shard := range shardsOf(t, w) {
		for key, text := range shard.Data {
			all++
			if o, known := ownerOf(key, text); known && o.namespace == namespace {
				of++
			}
		}
	}
	return of, all
}

// TestGoneNamespacesLeaveNothing: what a thousand namespaces that are gone have left in
// the record is taken out; what belongs to one that exists, to all, or to another
// writer stays.
func TestGoneNamespacesLeaveNothing(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, problems := newRecords(t, w)
	watchRecords(t, r)
	everywhere := cluster.Scope{GroupKind: kube.Deployment().GroupKind()}
	r.Begin(everywhere, time.Time{})
	note, noted := "a person's", deploymentKey(w.Namespace, "web")
	r.shardOf(noted).set("note", &note)
	leaveBehind(t, r, w.Namespace)
	for i := range 1000 {
		leaveBehind(t, r, fmt.Sprint("gone-", i))
	}
	r.flush(t.Context())
	_, before := keysOf(t, w, w.Namespace)
	if err := r.Sweep(t.Context(), func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	r.flush(t.Context())
	of, all := keysOf(t, w, w.Namespace)
	if of != 8 || all != of+2 {
		t.Errorf("%d keys of %d are left, %d of the namespace that exists; want its 8, the scope of all and the note; problems %s", all, before, of, problems.text())
	}
	if _, begun := r.Since(everywhere); !begun {
		t.Error("that all namespaces are followed is forgotten")
	}
	checkEntry(t, r, noted, "1")
}

// TestKnownNamespacesStay: what is on record of a namespace that the cache knows stays,
// also when a list of namespaces would not have it yet.
func TestKnownNamespacesStay(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, _ := newRecords(t, w)
	watchRecords(t, r)
	leaveBehind(t, r, "shop")
	r.flush(t.Context())
	if err := r.Sweep(t.Context(), func(namespace string) bool { return namespace == "shop" }); err != nil {
		t.Fatal(err)
	}
	checkEntry(t, r, deploymentKey("shop", "web"), "1")
}

// TestGoneKindsLeaveNothing: a kind that the API server does not have is believed gone
// at the second look: an API server that just starts may not know it yet.
func TestGoneKindsLeaveNothing(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, _ := newRecords(t, w)
	watchRecords(t, r)
	gone := kube.Key{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Gone"}, Namespace: w.Namespace, Name: "web"}
	kept := deploymentKey(w.Namespace, "web")
	put(t, r, gone, "1")
	put(t, r, kept, "1")
	r.Begin(cluster.Scope{GroupKind: gone.GroupKind}, time.Time{})
	r.flush(t.Context())
	for sweep, want := range []int{3, 1} {
		if err := r.Sweep(t.Context(), func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
		r.flush(t.Context())
		if _, all := keysOf(t, w, ""); all != want {
			t.Errorf("%d keys are left after sweep %d, want %d", all, sweep+1, want)
		}
	}
	checkEntry(t, r, kept, "1")
}

// TestAForgottenWorkloadLeavesNothing: also what could not be read of it goes.
func TestAForgottenWorkloadLeavesNothing(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, _ := newRecords(t, w)
	leaveBehind(t, r, "shop")
	odd := deploymentKey("shop", "odd")
	r.flush(t.Context())
	r.Forget(odd)
	r.flush(t.Context())
	for _, shard := range shardsOf(t, w) {
		if text, kept := shard.Data["unreadable."+storageKey(odd)]; kept {
			t.Errorf("%q is kept of a workload that is gone", text)
		}
	}
}
