package cluster

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// oneDeployment is an API server that has one Deployment and nothing else, and
// lists without streams. The first watch of Deployments ends when it is released.
type oneDeployment struct {
	client.WithWatch

	first    sync.Once
	released chan struct{}
}

func (*oneDeployment) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.SetResourceVersion("1")
	if l, ok := list.(*appsv1.DeploymentList); ok {
		l.Items = []appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", Annotations: map[string]string{settings.Reload: "configmap/app"},
		}}}
	}
	return nil
}

func (s *oneDeployment) Watch(_ context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if o := (&client.ListOptions{}).ApplyOptions(options); o.Raw.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	var w watch.Interface = watch.NewFake()
	if _, ok := list.(*appsv1.DeploymentList); ok {
		s.first.Do(func() { w = &lingering{w, s.released} })
	}
	return w, nil
}

// lingering is a watch that does not end at once.
type lingering struct {
	watch.Interface

	released <-chan struct{}
}

func (l *lingering) Stop() {
	<-l.released
	l.Interface.Stop()
}

// TestKindsOfOneName: two groups may have a kind of the same name, and each has its
// own series.
func TestKindsOfOneName(t *testing.T) {
	t.Parallel()
	custom := func(text string) kube.Kind {
		kind, err := kube.ParseKind(text)
		if err != nil {
			t.Fatal(err)
		}
		return kind
	}
	advanced := custom("apps.kruise.io/v1beta1/StatefulSet=spec.template")
	c := NewCache(nil, CacheOptions{Kinds: append(kube.Kinds(), advanced), Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {}})
	seen := map[string]bool{}
	for _, s := range c.Status() {
		if seen[s.Resource] {
			t.Errorf("two resources are called %s", s.Resource)
		}
		seen[s.Resource] = true
	}
	for want, kind := range map[string]kube.Kind{
		"statefulsets in shop":                kube.StatefulSet(),
		"statefulsets.apps.kruise.io in shop": advanced,
		"replicationcontrollers in shop":      custom("v1/ReplicationController=spec.template"),
	} {
		if got := kind.ResourceName("shop"); got != want {
			t.Errorf("the resource of %s is %q, want %q", kind, got, want)
		}
	}
}

// TestNamespaceThatComesBackAtOnce: the watches that a namespace had before may take
// a minute to end. What they leave must not be what the new ones have found.
func TestNamespaceThatComesBackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := &oneDeployment{released: make(chan struct{})}
		c := NewCache(server, CacheOptions{
			Kinds: kube.Kinds(), Selector: labels.Everything(), Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {},
		})
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx, kube.Hashers{}) })
		synctest.Wait()
		shop := &kube.Namespace{Name: "shop"}
		c.chooseNamespace(nil, shop)
		synctest.Wait()
		c.chooseNamespace(shop, nil)
		c.chooseNamespace(nil, shop)
		synctest.Wait()
		close(server.released)
		synctest.Wait()
		if users := c.Users("shop", input.ConfigMap("app")); len(users) != 1 {
			t.Errorf("%v use the ConfigMap, want the one Deployment", users)
		}
		if len(c.ending) > 0 {
			t.Errorf("the watches of %v have ended and are not forgotten", c.ending)
		}
		cancel()
		running.Wait()
	})
}
