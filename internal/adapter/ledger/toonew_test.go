package ledger

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// TestRecordsLeaveNewerEntriesAlone: after a downgrade the newer program's entries
// must be there when it returns.
func TestRecordsLeaveNewerEntriesAlone(t *testing.T) {
	t.Parallel()
	const newer = `{"v":3,"id":"Deployment.apps/shop/a","shape":["unknown"]}`
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
	held := configMap(r.shardOf(key).name, map[string]string{storageKey(key): `{"v":3,"id":"Deployment.apps/shop/a"}`})
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

// TestEarlierFormatIsDropped: workloads whose entries are in an earlier format get a new baseline. One
// line reports them all, and the old texts don't stay in the record.
func TestEarlierFormatIsDropped(t *testing.T) {
	t.Parallel()
	const earlier = `{"v":1,"id":"Deployment.apps/shop/a","uid":"4711"}`
	var problems []string
	r := New(nil, Options{Name: "state", Now: time.Now, Report: func(err error) { problems = append(problems, err.Error()) }, Status: func(mirror.Sync) {}})
	a, b := neighbours(r)
	s := r.shardOf(a)
	if err := r.mirror.Add(configMap(s.name, map[string]string{storageKey(a): earlier, storageKey(b): earlier})); err != nil {
		t.Fatal(err)
	}
	for _, key := range []kube.Key{a, b, a} {
		if e, ok := r.Entry(key); !ok || !e.Lost || len(e.Inputs) > 0 {
			t.Errorf("the entry of %s is %+v, %t; want it as lost", key, e, ok)
		}
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "new baseline") || !strings.Contains(problems[0], "format 1") {
		t.Errorf("reported as %q, want one line", problems)
	}
	put(t, r, a, "1")
	if len(s.dirty) != 1 || len(r.TooNew()) > 0 {
		t.Errorf("%d changes to write, too new %v; want the new entry alone", len(s.dirty), r.TooNew())
	}
	checkEntry(t, r, a, "1")
}
