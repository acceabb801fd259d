package ledger

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// benchEntry is what is on record of a workload with five sources, one of which is due.
func benchEntry(key kube.Key, due int) record.Entry {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := record.Entry{
		ID: key.ID(), UID: "b2b7f7a4-9c55-4c8a-8f6c-0d9a6f1f2a3b", Inputs: map[input.ID]record.Delivered{},
		Pending:  record.Pending{PendingSince: at, DelaySince: at},
		Coverage: record.Coverage{RolledOutAt: at, Accounted: 3, Template: record.Template{Generation: 4, Sum: strings.Repeat("7", 10)}},
		Decision: record.NewDecision(input.QuietWindow, "configmap/config-0 changed: waits until its sources are quiet", at, at.Add(5*time.Second)),
	}
	for i := range 5 {
		sum := strings.Repeat(fmt.Sprint(i), 32)
		e.Inputs[input.ConfigMap(fmt.Sprint(key.Name, "-config-", i))] = record.Delivered{
			Version: fingerprint.Version{Basis: "1:*", Sum: sum}, Shown: input.Tracked(sum[:10]), From: "3", Was: sum[:10],
		}
	}
	id := input.ConfigMap(key.Name + "-config-0")
	given := e.Inputs[id]
	given.Due = fmt.Sprintf("%010x", due)
	e.Inputs[id] = given
	return e
}

func benchKeys(n int) []kube.Key {
	keys := make([]kube.Key, n)
	for i := range keys {
		keys[i] = deploymentKey("shop", fmt.Sprintf("workload-%05d", i))
	}
	return keys
}

func benchRecords() *Records {
	return New(nil, Options{Namespace: "own", Name: "state", Now: time.Now, Report: func(error) {}})
}

// BenchmarkLook is what the record costs at each look at a workload: nothing has changed, or another version is due.
func BenchmarkLook(b *testing.B) {
	for _, changes := range []bool{false, true} {
		b.Run(fmt.Sprintf("changes=%t", changes), func(b *testing.B) {
			r, keys := benchRecords(), benchKeys(50)
			for _, key := range keys {
				if err := r.Put(key, benchEntry(key, 0)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				key := keys[n%len(keys)]
				e, _ := r.Entry(key)
				room := e.Room()
				r.Reserve(key, room)
				next := e.Clone()
				if changes {
					id := input.ConfigMap(key.Name + "-config-0")
					given := next.Inputs[id]
					given.Due = fmt.Sprintf("%010x", n)
					next.Inputs[id] = given
				}
				if !next.Equal(e) {
					if err := r.Put(key, next); err != nil {
						b.Fatal(err)
					}
				}
				r.FreeRoom(key)
				n++
			}
		})
	}
}

// BenchmarkHeld is what 10,000 workloads with five sources each take of the heap: after the record was read, after each was looked at, and after
// each was written and the watch has shown that.
func BenchmarkHeld(b *testing.B) {
	for b.Loop() {
		keys := benchKeys(10000)
		before := heap()
		r := benchRecords()
		arrive(b, r, keys, "1")
		read := heap()
		for _, key := range keys {
			r.Entry(key)
		}
		looked := heap()
		for _, key := range keys {
			if err := r.Put(key, benchEntry(key, 1)); err != nil {
				b.Fatal(err)
			}
		}
		for _, s := range r.shards {
			changes, _ := r.send(s)
			r.settle(s, changes, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}})
		}
		arrive(b, r, keys, "2")
		written := heap()
		b.ReportMetric((read-before)/10000, "B/read")
		b.ReportMetric((looked-before)/10000, "B/looked")
		b.ReportMetric((written-before)/10000, "B/written")
		runtime.KeepAlive(r)
	}
}

// arrive is the watch that delivers all shards.
func arrive(b *testing.B, r *Records, keys []kube.Key, resourceVersion string) {
	b.Helper()
	shards := map[string]*corev1.ConfigMap{}
	for _, key := range keys {
		name := r.shardOf(key).name
		if shards[name] == nil {
			shards[name] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: name, ResourceVersion: resourceVersion}, Data: map[string]string{}}
		}
		text, err := benchEntry(key, 1).Encode()
		if err != nil {
			b.Fatal(err)
		}
		shards[name].Data[storageKey(key)] = text
	}
	for _, cm := range shards {
		if err := r.mirror.Update(cm); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
