package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// quietRecords is a record without an API server that must not report anything.
func quietRecords(t *testing.T) *Records {
	t.Helper()
	return New(nil, Options{Name: "state", Now: time.Now, Report: func(err error) { t.Error(err) }, Status: func(mirror.Sync) {}})
}

// TestAnEntryIsDecodedOnce: the loop looks at a workload far more often than its entry changes.
func TestAnEntryIsDecodedOnce(t *testing.T) {
	r, key := quietRecords(t), deploymentKey("shop", "a")
	put(t, r, key, "1")
	text := textOf(t, entryOf(key, "1"))
	again := testing.AllocsPerRun(100, func() { r.Entry(key) })
	decoding := testing.AllocsPerRun(100, func() { _, _ = record.Decode(text) })
	if again >= decoding {
		t.Errorf("%.0f allocations for an entry that was read before, and %.0f to decode it", again, decoding)
	}
}

// TestAnEntryThatChangedIsDecodedAgain: whoever changes it, the newest text counts.
func TestAnEntryThatChangedIsDecodedAgain(t *testing.T) {
	t.Parallel()
	r, key := quietRecords(t), deploymentKey("shop", "a")
	put(t, r, key, "1")
	checkEntry(t, r, key, "1")
	put(t, r, key, "2")
	checkEntry(t, r, key, "2")
	arrives(t, r, "1", map[string]string{storageKey(key): textOf(t, entryOf(key, "3"))})
	checkEntry(t, r, key, "3")
	r.Forget(key)
	if e, ok := r.Entry(key); ok {
		t.Errorf("the entry %+v was forgotten", e)
	}
}

// TestFewEntriesAreKeptDecoded: decoded entries of all workloads would take more memory than the rest of the record.
func TestFewEntriesAreKeptDecoded(t *testing.T) {
	t.Parallel()
	r, a := quietRecords(t), deploymentKey("shop", "a")
	s := r.shardOf(a)
	for i := 0; len(s.dirty) < 5*decodedAtMost; i++ {
		key := deploymentKey("shop", fmt.Sprint(i))
		if r.shardOf(key) != s {
			continue
		}
		put(t, r, key, "1")
		checkEntry(t, r, key, "1")
		checkEntry(t, r, key, "1")
	}
	if len(s.decoded) != decodedAtMost {
		t.Errorf("%d entries are kept decoded, want %d", len(s.decoded), decodedAtMost)
	}
}

// TestTextsAreKeptOnce: the mirror's copies of the shards would be a second copy of all texts, whether they are new, changed, or listed again.
func TestTextsAreKeptOnce(t *testing.T) {
	t.Parallel()
	r, key := quietRecords(t), deploymentKey("shop", "a")
	data := map[string]string{storageKey(key): textOf(t, entryOf(key, "1"))}
	check := func(how string) {
		t.Helper()
		r.mirror.Each(func(s *shardCopy) {
			if len(s.Data) > 0 {
				t.Errorf("%s: the mirror keeps %v", how, s.Data)
			}
		})
		checkEntry(t, r, key, "1")
	}
	arrives(t, r, "1", data)
	check("new")
	arrives(t, r, "2", data)
	check("changed")
	same := configMap(r.shardOf(key).name, data)
	same.ResourceVersion = "2"
	if err := r.mirror.Replace([]any{same}, "2"); err != nil {
		t.Fatal(err)
	}
	check("listed again")
}

// arrives is an event of the watch: the shard of workload a.
func arrives(t *testing.T, r *Records, resourceVersion string, data map[string]string) {
	t.Helper()
	shard := configMap(r.shardOf(deploymentKey("shop", "a")).name, data)
	shard.ResourceVersion = resourceVersion
	if err := r.mirror.Update(shard); err != nil {
		t.Fatal(err)
	}
}

func textOf(t *testing.T, e record.Entry) string {
	t.Helper()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
