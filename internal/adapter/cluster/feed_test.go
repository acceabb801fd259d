package cluster

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// emptyMemory is a record that was read and has nothing in it.
type emptyMemory struct{}

func (emptyMemory) Status() mirror.Sync    { return mirror.Sync{Synced: true} }
func (emptyMemory) Keys() []kube.Key       { return nil }
func (emptyMemory) Wake(func(kube.Key))    {}
func (emptyMemory) Begin(Scope, time.Time) {}

// schedule wakes workloads for reasons of its own.
type schedule struct{ wake func(kube.Key) }

func (s *schedule) Wake(f func(kube.Key)) { s.wake = f }

// TestFeedHoldsEveryWakerBack: whoever wakes a workload, it is not looked at before
// enough is known to decide on it.
func TestFeedHoldsEveryWakerBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := NewCache(nil, CacheOptions{
			Kinds: []kube.Kind{kube.Deployment()}, Sources: []input.Kind{input.KindConfigMap},
			Vocabulary: settings.Native{}, IgnoreNamespaces: true, Now: time.Now, Report: func(mirror.Sync) {},
		})
		var mu sync.Mutex
		var added []kube.Key
		add := func(key kube.Key) {
			mu.Lock()
			defer mu.Unlock()
			added = append(added, key)
		}
		family := &schedule{}
		var running sync.WaitGroup
		running.Go(func() { Feed(ctx, c, emptyMemory{}, add, family) })
		synctest.Wait()
		family.wake(key(kube.Deployment(), "web"))
		if len(added) > 0 {
			t.Errorf("%v are looked at before anything is listed", added)
		}
		a, _ := c.areas.Of("shop")
		must(t, a.sources[input.KindConfigMap].Replace(nil, "1"))
		must(t, a.workloads[kube.Deployment().GroupKind()].Replace(nil, "1"))
		time.Sleep(2 * laterLooks) // of a clock that does not wait
		synctest.Wait()
		if !slices.Equal(added, []kube.Key{key(kube.Deployment(), "web")}) {
			t.Errorf("%v are looked at, want the workload that was held back, once", added)
		}
		cancel()
		running.Wait()
	})
}
