package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// sameShard yields workloads of a namespace that are kept in one shard.
func sameShard(r *Records, shard *shard, namespace string) func() kube.Key {
	i := 0
	return func() kube.Key {
		for ; ; i++ {
			if key := deploymentKey(namespace, fmt.Sprint("w", i)); r.shardOf(key) == shard {
				i++
				return key
			}
		}
	}
}

// wide is an entry with many inputs to which all has happened that can.
func wide(key kube.Key, inputs int) record.Entry {
	e := record.Entry{ID: key.ID(), UID: strings.Repeat("u", 36), Inputs: map[input.ID]record.Given{}}
	for i := range inputs {
		id := input.ConfigMap(fmt.Sprintf("%s-%03d", strings.Repeat("c", 30), i))
		e.Inputs[id] = record.Given{
			Version: fingerprint.Version{Basis: "2k1a2b3c:1a2b3c4d", Sum: strings.Repeat("1", 32)},
			Shown:   input.Tracked("1111111111"), From: "2026-11-15T03:04:05Z", Back: key.Name + "-6b7c8d9f5d",
		}
	}
	return e
}

// evicting is the entry during a series of evictions.
func evicting(e record.Entry) record.Entry {
	shown := input.Shown{}
	for id := range e.Inputs {
		shown[id] = input.Tracked("1111111111")
	}
	e.EvictFor = shown.String()
	return e
}

// admit puts entries of one namespace into the shard until there is no room, and
// returns them with the one that found none and what was said of it. Each entry grows
// to what grown makes of it.
func admit(t *testing.T, r *Records, next func() kube.Key, grown func(record.Entry) record.Entry) (in []kube.Key, out kube.Key, why string) {
	t.Helper()
	for {
		key := next()
		e := wide(key, 20)
		if why = r.Full(key, e.Room()); why != "" {
			return in, key, why
		}
		if err := r.Put(key, grown(e)); err != nil {
			t.Fatal(err)
		}
		in = append(in, key)
	}
}

// TestOneNamespaceLeavesRoom: a namespace that has taken its room gets no more. Its
// workloads on record keep theirs, other namespaces have their own, and room that is
// given back can be taken.
func TestOneNamespaceLeavesRoom(t *testing.T) {
	t.Parallel()
	r := New(nil, Options{Name: "state", Now: time.Now, Status: func(mirror.Status) {}})
	s := r.shardOf(deploymentKey("greedy", "w0"))
	in, out, why := admit(t, r, sameShard(r, s, "greedy"), record.Entry.Clone)
	if len(in) < 10 || !strings.Contains(why, "namespace greedy") || !strings.Contains(why, s.name) {
		t.Errorf("%d workloads are on record, the next is told %q", len(in), why)
	}
	if _, own := s.taken("", "greedy"); own > namespaceRoom {
		t.Errorf("the namespace takes %d bytes", own)
	}
	if why := r.Full(in[0], wide(in[0], 20).Room()); why != "" {
		t.Errorf("a workload on record is told %q", why)
	}
	if why := r.Full(in[0], wide(in[0], 200).Room()); why == "" {
		t.Error("a workload on record gets more room than there is")
	}
	other := sameShard(r, s, "modest")()
	if why := r.Full(other, wide(other, 20).Room()); why != "" {
		t.Errorf("another namespace is told %q", why)
	}
	r.Forget(in[1])
	if why := r.Full(out, wide(out, 20).Room()); why != "" {
		t.Errorf("there is room again, and the next is told %q", why)
	}
}

// TestRoomIsKept: whoever was told that there is room finds it, however many others ask
// before the entry is put. What no entry came of is given back.
func TestRoomIsKept(t *testing.T) {
	t.Parallel()
	r := New(nil, Options{Name: "state", Now: time.Now, Status: func(mirror.Status) {}})
	s := r.shardOf(deploymentKey("shop", "w0"))
	next, room, told := sameShard(r, s, "shop"), wide(deploymentKey("shop", "w0"), 20).Room(), 0
	for r.Full(next(), room) == "" {
		told++
	}
	if most := namespaceRoom / room; told > most {
		t.Errorf("%d workloads were told that there is room for %d", told, most)
	}
	if err := r.mirror.Replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(t.Context(), func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if why := r.Full(next(), room); why != "" {
		t.Errorf("nothing is on record, and the next is told %q", why)
	}
}

// TestAFullShardCanBeWritten: when all namespaces of a shard take what they can get, and
// all that can happens to their workloads, it stays under 900 KiB, and the API server
// takes it.
func TestAFullShardCanBeWritten(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, problems := newRecords(t, w)
	s := r.shardOf(deploymentKey("n0", "w0"))
	for i := 0; ; i++ {
		if _, _, why := admit(t, r, sameShard(r, s, fmt.Sprint("n", i)), evicting); strings.Contains(why, "no room left") {
			break
		}
	}
	r.flush(t.Context())
	if text := problems.text(); text != "<nil>" {
		t.Errorf("the shard cannot be written: %.200s", text)
	}
	size := 0
	for key, text := range s.stored {
		size += len(key) + len(text)
	}
	if size > 900<<10 || size < shardRoom/2 {
		t.Errorf("the shard has %d bytes, want it well filled and under 900 KiB", size)
	}
}
