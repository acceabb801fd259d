package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// TestRecordsLeaveNewerEntriesAlone: after a downgrade the newer program's entries
// must be there when it returns.
func TestRecordsLeaveNewerEntriesAlone(t *testing.T) {
	t.Parallel()
	const newer = `{"v":2,"id":"Deployment.apps/shop/a","shape":["unknown"]}`
	key := deploymentKey("shop", "a")
	r := New(nil, Options{Name: "state", Now: time.Now, Report: func(err error) { t.Error(err) }, Status: func(mirror.Sync) {}})
	s := r.shardOf(key)
	if err := r.mirror.Replace([]any{configMap(s.name, map[string]string{storageKey(key): newer})}, "1"); err != nil {
		t.Fatal(err)
	}
	if e, ok := r.Entry(key); !ok || !e.TooNew || e.Lost {
		t.Errorf("the entry is %+v, %t; want it as too new", e, ok)
	}
	put(t, r, key, "1")
	r.Forget(key)
	if text, ok := s.get(storageKey(key)); !ok || text != newer || len(s.dirty) > 0 {
		t.Errorf("the entry is %q with %d changes to write, want it untouched", text, len(s.dirty))
	}
	if got := r.TooNew(); !slices.Equal(got, []string{storageKey(key)}) {
		t.Errorf("too new are %v", got)
	}
	if err := r.mirror.Replace([]any{configMap(s.name, nil)}, "2"); err != nil {
		t.Fatal(err)
	}
}

// TestStandbyForgetsNewerEntries: the readiness of a process that does not lead names no
// entries that are gone.
func TestStandbyForgetsNewerEntries(t *testing.T) {
	t.Parallel()
	r := New(nil, Options{Name: "state", Now: time.Now, Report: func(err error) { t.Error(err) }, Status: func(mirror.Sync) {}})
	key := deploymentKey("shop", "a")
	held := configMap(r.shardOf(key).name, map[string]string{storageKey(key): `{"v":2,"id":"Deployment.apps/shop/a"}`})
	if err := r.mirror.Add(held); err != nil {
		t.Fatal(err)
	}
	if got := r.TooNew(); len(got) != 1 {
		t.Fatalf("too new are %v, want the one entry", got)
	}
	if err := r.mirror.Delete(held); err != nil {
		t.Fatal(err)
	}
	if got := r.TooNew(); len(got) > 0 {
		t.Errorf("too new are %v, and the record is gone", got)
	}
}
