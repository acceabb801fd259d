package ownership_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// labelled is an API server with a revisioned ConfigMap and a revisioned Secret in each of
// two namespaces. It notes which Secrets are asked for.
type labelled struct {
	client.WithWatch

	mu      sync.Mutex
	secrets map[string]bool // by namespace
}

func (l *labelled) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	list.SetResourceVersion("1")
	found, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok {
		return nil
	}
	namespace := (&client.ListOptions{}).ApplyOptions(options).Namespace
	if found.Kind == "SecretList" {
		l.mu.Lock()
		l.secrets[namespace] = true
		l.mu.Unlock()
	}
	for _, ns := range []string{"blog", "shop"} {
		if namespace == "" || namespace == ns {
			found.Items = append(found.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"}})
		}
	}
	return nil
}

func (l *labelled) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	return (&chosenShop{namespaces: watch.NewFake(), released: closedChannel()}).Watch(ctx, list, options...)
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// TestSecretsOfSomeNamespaces: the Secrets of a namespace that is not named are not asked
// for, wherever the cache watches, and cannot be decided on.
func TestSecretsOfSomeNamespaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		watched, secrets []string
		asked, decided   []string
	}{
		"all of all":             {nil, nil, []string{""}, []string{"blog", "shop"}},
		"one of all":             {nil, []string{"shop"}, []string{"shop"}, []string{"shop"}},
		"none of all":            {nil, []string{}, nil, nil},
		"one of two namespaces":  {[]string{"blog", "shop"}, []string{"shop"}, []string{"shop"}, []string{"shop"}},
		"all of two namespaces":  {[]string{"blog", "shop"}, nil, []string{"blog", "shop"}, []string{"blog", "shop"}},
		"none of two namespaces": {[]string{"blog", "shop"}, []string{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				server := &labelled{secrets: map[string]bool{}}
				cache := cluster.NewCache(server, cluster.CacheOptions{
					Kinds: kube.Kinds(), Namespaces: c.watched, IgnoreNamespaces: true, Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {},
				})
				w := ownership.New(cache, ownership.Options{Now: time.Now, Report: func(mirror.Sync) {}, Secrets: c.secrets})
				var running sync.WaitGroup
				running.Go(func() { cache.Run(ctx, kube.Hashers{}) })
				running.Go(func() { w.Feed(ctx, func(ownership.ObjectKey) {}) })
				time.Sleep(time.Minute) // of a clock that does not wait
				synctest.Wait()

				var decided []string
				for _, ns := range []string{"blog", "shop"} {
					if _, found := w.Object(ownership.ObjectKey{Namespace: ns, Source: input.ConfigMap("app")}); !found {
						t.Errorf("the ConfigMap of %s cannot be decided on", ns)
					}
					if _, found := w.Object(ownership.ObjectKey{Namespace: ns, Source: input.Secret("app")}); found {
						decided = append(decided, ns)
					}
				}
				if diff := cmp.Diff(c.decided, decided); diff != "" {
					t.Errorf("Secrets that can be decided on (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(c.asked, slices.Sorted(maps.Keys(server.secrets))); diff != "" {
					t.Errorf("Secrets that were asked for (-want +got):\n%s", diff)
				}
				cancel()
				running.Wait()
			})
		})
	}
}
