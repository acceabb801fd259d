package ledger

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/labtest"
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

// baseline is the entry of a workload that was seen for the first time.
func baseline(key kube.Key, inputs int) record.Entry {
	e := record.Entry{
		ID: key.ID(), UID: strings.Repeat("u", 36), Inputs: map[input.ID]record.Delivered{},
		Coverage: record.Coverage{AsOf: time.Unix(1_800_000_000, 0), Accounted: 1, Template: record.Template{Generation: 1, Sum: strings.Repeat("f", 32)}},
	}
	for i := range inputs {
		e.Inputs[input.ConfigMap(fmt.Sprint("settings-", i))] = record.Delivered{
			Version: fingerprint.Version{Basis: "2k1a2b3c:1a2b3c4d", Sum: strings.Repeat("1", 32)},
		}
	}
	return e
}

// rolledOut is the entry after our patch delivered every input.
func rolledOut(e record.Entry) record.Entry {
	e = e.Clone()
	e.RolledOutAt, e.AsOf = e.AsOf, time.Time{}
	for id, given := range e.Inputs {
		given.Shown, given.From = input.Tracked("1111111111"), "12"
		e.Inputs[id] = given
	}
	return e
}

// evicting is the entry when all has happened that can: everything was reverted and
// waits, and a series of evictions runs.
func evicting(e record.Entry) record.Entry {
	e = rolledOut(e)
	now := time.Unix(1_800_000_000, 123_456_789)
	e.PendingSince, e.DelaySince, e.AsOf, e.Eviction.Since, e.Eviction.Pods, e.Released = now, now, now, now, 100, 1<<40
	shown := input.Shown{}
	for id, given := range e.Inputs {
		shown[id] = given.Shown
		given.From, given.RevertedTo, given.Awaits, given.Sealed = "2026-11-15T03:04:05Z", e.ID[strings.LastIndexByte(e.ID, '/')+1:]+"-6b7c8d9f5d", true, true
		e.Inputs[id] = given
	}
	e.Eviction.For = shown.String()
	return e
}

// look is what the loop does with a workload: it reserves room, puts the entry when
// there is some, and is done.
func look(t *testing.T, r *Records, key kube.Key, e record.Entry) (why string) {
	t.Helper()
	defer r.FreeRoom(key)
	if why = r.Reserve(key, e.Room()); why != "" {
		return why
	}
	if err := r.Put(key, e); err != nil {
		t.Fatal(err)
	}
	return ""
}

// admit puts baselines into the shard until there is no room, and returns their
// workloads with the one that found none and what was said of it.
func admit(t *testing.T, r *Records, next func() kube.Key) (in []kube.Key, out kube.Key, why string) {
	t.Helper()
	for {
		key := next()
		if why = look(t, r, key, baseline(key, 20)); why != "" {
			return in, key, why
		}
		in = append(in, key)
	}
}

func inMemory() *Records {
	return New(nil, Options{Name: "state", Now: time.Now, Status: func(mirror.Sync) {}})
}

// size is what the keys and newest texts of a namespace take, counted one by one;
// of all without one.
func (s *shard) size(namespace string) int {
	size := 0
	for key := range s.taken.lots {
		text, _ := s.get(key)
		if o, _ := ownerOf(key, text); namespace == "" || o.namespace == namespace {
			size += len(key) + len(text)
		}
	}
	return size
}

// TestOneNamespaceLeavesRoom: a namespace that has taken its room gets no more. Its
// workloads on record are followed as before, other namespaces have their own room, and
// what is given back can be taken.
func TestOneNamespaceLeavesRoom(t *testing.T) {
	t.Parallel()
	r := inMemory()
	s := r.shardOf(deploymentKey("greedy", "w0"))
	in, out, why := admit(t, r, sameShard(r, s, "greedy"))
	if size := s.size("greedy"); size > 64<<10 || size < 50<<10 || !strings.Contains(why, "namespace greedy") || !strings.Contains(why, s.name) {
		t.Errorf("%d workloads on record take %d bytes, the next is told %q", len(in), size, why)
	}
	for _, key := range in {
		if why := look(t, r, key, rolledOut(baseline(key, 20))); why != "" {
			t.Errorf("a workload on record is told %q", why)
		}
	}
	if why := look(t, r, in[0], baseline(in[0], 40)); why == "" {
		t.Error("a workload on record gets more room than there is")
	}
	other := sameShard(r, s, "modest")()
	if why := look(t, r, other, baseline(other, 20)); why != "" {
		t.Errorf("another namespace is told %q", why)
	}
	for _, key := range in[len(in)/2:] {
		r.Forget(key)
	}
	if why := look(t, r, out, baseline(out, 20)); why != "" {
		t.Errorf("there is room again, and the next is told %q", why)
	}
}

// TestOneNamespaceIsBounded: whatever becomes of the workloads of a namespace, they
// take an eighth of what all can.
func TestOneNamespaceIsBounded(t *testing.T) {
	t.Parallel()
	r := inMemory()
	s := r.shardOf(deploymentKey("greedy", "w0"))
	in, _, _ := admit(t, r, sameShard(r, s, "greedy"))
	refused := 0
	for _, key := range in {
		if why := look(t, r, key, evicting(baseline(key, 20))); why != "" {
			refused++
		}
	}
	if size := s.size("greedy"); size > 108<<10 || size < 90<<10 || refused == 0 {
		t.Errorf("the namespace takes %d bytes, %d workloads were refused", size, refused)
	}
}

// TestRoomIsKept: whoever was told that there is room finds it, however many others ask
// before the entry is put. What no entry came of is given back.
func TestRoomIsKept(t *testing.T) {
	t.Parallel()
	r := inMemory()
	s := r.shardOf(deploymentKey("shop", "w0"))
	next, room := sameShard(r, s, "shop"), baseline(deploymentKey("shop", "w0"), 20).Room()
	var told []kube.Key
	key, most := next(), (64<<10)/room
	for ; len(told) <= most && r.Reserve(key, room) == ""; key = next() {
		told = append(told, key)
	}
	if len(told) > most {
		t.Errorf("%d workloads were told that there is room for %d", len(told), most)
	}
	for _, key := range told {
		r.FreeRoom(key)
	}
	if why := r.Reserve(key, room); why != "" {
		t.Errorf("nothing is on record, and the next is told %q", why)
	}
}

// TestAFullShardCanBeWritten: when many namespaces fill a shard, and all that can happens
// to their workloads, it stays under 900 KiB, and the API server takes it. No rollout is
// refused for it.
func TestAFullShardCanBeWritten(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	r, problems := newRecords(t, w)
	s := r.shardOf(deploymentKey("n0", "w0"))
	var next [40]func() kube.Key
	var all []kube.Key
	for why := ""; !strings.Contains(why, "is full"); {
		namespace := len(all) % 40 // none of them comes to its own bound
		if next[namespace] == nil {
			next[namespace] = sameShard(r, s, fmt.Sprint("n", namespace))
		}
		key := next[namespace]()
		why = look(t, r, key, baseline(key, 20))
		all = append(all, key)
	}
	all = all[:len(all)-1]
	if size := s.size(""); size > 500<<10 || size < 490<<10 {
		t.Errorf("the baselines take %d bytes, want just under 500 KiB", size)
	}
	for _, key := range all {
		if why := look(t, r, key, rolledOut(baseline(key, 20))); why != "" {
			t.Errorf("a workload on record is told %q", why)
		}
	}
	flushed(t, r, s, problems)
	for _, key := range all {
		_ = look(t, r, key, evicting(baseline(key, 20))) // some find no room
	}
	flushed(t, r, s, problems)
	for _, key := range all {
		e, _ := r.Entry(key)
		e.GoneAt = time.Unix(1_800_000_000, 123_456_789)
		if err := r.Put(key, e); err != nil {
			t.Fatal(err)
		}
	}
	flushed(t, r, s, problems)
	if size := s.size(""); size > 900<<10 || size < 840<<10 {
		t.Errorf("the shard has %d bytes, want it filled and under 900 KiB", size)
	}
}

// flushed writes a shard. On a busy machine one attempt may take too long.
func flushed(t *testing.T, r *Records, s *shard, p *problems) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		r.flush(t.Context())
		return len(s.dirty) == 0, fmt.Sprintf("%d changes are not written: %.200s", len(s.dirty), p.text())
	})
}

// TestFiftyThousandWorkloads: a large cluster has room, also when all that can happens
// to all of its workloads at once. Names are of one length, so that one text stands for
// all.
func TestFiftyThousandWorkloads(t *testing.T) {
	t.Parallel()
	r := inMemory()
	for _, grow := range []func(record.Entry) record.Entry{record.Entry.Clone, evicting} {
		e := grow(baseline(deploymentKey("team-000", "service-000"), 3))
		text, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50_000 {
			key := deploymentKey(fmt.Sprintf("team-%03d", i%500), fmt.Sprintf("service-%03d", i/500))
			if why := r.Reserve(key, e.Room()); why != "" {
				t.Fatalf("workload %d: %s", i, why)
			}
			r.shardOf(key).set(storageKey(key), &text)
			r.FreeRoom(key)
		}
	}
}

// TestTotalsAreKept: the running totals are what a count from the start gives, after
// whatever the loop, the API server and other writers do to a shard.
func TestTotalsAreKept(t *testing.T) {
	t.Parallel()
	r, random := inMemory(), rand.New(rand.NewPCG(1, 2))
	s := r.shardOf(deploymentKey("shop", "w0"))
	keys := make([]kube.Key, 12)
	for i, next := range []func() kube.Key{sameShard(r, s, "shop"), sameShard(r, s, "other")} {
		for j := range 6 {
			keys[6*i+j] = next()
		}
	}
	version := 0
	for step := range 5000 {
		key := keys[random.IntN(len(keys))]
		text := strings.Repeat("x", 1+random.IntN(50))
		version++
		switch random.IntN(9) {
		case 0, 1:
			s.set(storageKey(key), &text)
		case 2:
			r.Forget(key)
		case 3:
			r.Reserve(key, random.IntN(2000))
		case 4:
			r.FreeRoom(key)
		case 5:
			s.send()
		case 6:
			s.written(s.sent, fmt.Sprint(version-random.IntN(3)))
		case 7:
			s.insists = random.IntN(2) == 0
			s.adopt(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(version)}, Data: map[string]string{storageKey(key): text}})
		case 8:
			[]func(){s.lost, s.forget}[random.IntN(2)]()
		}
		kept := s.taken
		s.measureAll()
		if diff := cmp.Diff(s.taken, kept, cmp.AllowUnexported(tally{}, lot{})); diff != "" {
			t.Fatalf("step %d: -counted +kept\n%s", step, diff)
		}
		s.taken = kept
	}
}
