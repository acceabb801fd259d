package ownership_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// chosenShop is an API server with the namespace shop, in which a ReplicaSet and a
// CronJob use a revisioned ConfigMap each. It lists without streams, and its watch of
// ReplicaSets ends only when it is released.
type chosenShop struct {
	client.WithWatch

	namespaces *watch.FakeWatcher
	released   chan struct{}
}

func ofReplicaSet() ownership.ObjectKey {
	return ownership.ObjectKey{Namespace: "shop", Source: input.ConfigMap("of-replicaset")}
}

func ofCronJob() ownership.ObjectKey {
	return ownership.ObjectKey{Namespace: "shop", Source: input.ConfigMap("of-cronjob")}
}

func shop() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
}

func (*chosenShop) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.SetResourceVersion("1")
	yes := true
	uses := func(key ownership.ObjectKey) corev1.PodTemplateSpec {
		t := corev1.PodTemplateSpec{}
		t.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: key.Source.Name},
		}}}}
		return t
	}
	switch l := list.(type) {
	case *corev1.NamespaceList:
		l.Items = []corev1.Namespace{*shop()}
	case *appsv1.ReplicaSetList:
		l.Items = []appsv1.ReplicaSet{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "web-1", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web", Controller: &yes},
			}},
			Spec: appsv1.ReplicaSetSpec{Template: uses(ofReplicaSet())},
		}}
	case *batchv1.CronJobList:
		l.Items = []batchv1.CronJob{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "nightly"}}}
		l.Items[0].Spec.JobTemplate.Spec.Template = uses(ofCronJob())
	case *metav1.PartialObjectMetadataList:
		if l.Kind == "ConfigMapList" {
			for _, key := range []ownership.ObjectKey{ofReplicaSet(), ofCronJob()} {
				l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: key.Source.Name}})
			}
		}
	}
	return nil
}

func (s *chosenShop) Watch(_ context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if o := (&client.ListOptions{}).ApplyOptions(options); o.Raw.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	switch list.(type) {
	case *corev1.NamespaceList:
		return s.namespaces, nil
	case *appsv1.ReplicaSetList:
		return &lingering{watch.NewFake(), s.released}, nil
	}
	return watch.NewFake(), nil
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

// look is what the loop sees of an object that it is woken for.
type look struct {
	key   ownership.ObjectKey
	found bool
	users int
}

// looks notes what the loop sees, at the moment at which it is woken.
type looks struct {
	mu  sync.Mutex
	all []look
}

func (l *looks) add(w *ownership.Watch, key ownership.ObjectKey) {
	_, found := w.Object(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, look{key, found, len(w.Users(key))})
}

// take returns what was seen since the last time.
func (l *looks) take() []look {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.all
	l.all = nil
	slices.SortFunc(seen, func(a, b look) int { return len(b.key.Source.Name) - len(a.key.Source.Name) })
	return seen
}

// TestNamespaceThatIsNoLongerChosen: watches may take a minute to end. From the moment
// at which a namespace loses its label no object in it can be decided on, neither while
// they end nor while they are cleared, and each is forgotten.
func TestNamespaceThatIsNoLongerChosen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := &chosenShop{namespaces: watch.NewFake(), released: make(chan struct{})}
		cache := cluster.NewCache(server, cluster.CacheOptions{
			Kinds: kube.Kinds(), Selector: labels.Everything(), Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {},
		})
		w := ownership.New(cache, ownership.Options{Now: time.Now, Report: func(mirror.Sync) {}})
		var seen looks
		var running sync.WaitGroup
		running.Go(func() { cache.Run(ctx, kube.Hashers{}) })
		running.Go(func() { w.Feed(ctx, func(key ownership.ObjectKey) { seen.add(w, key) }) })
		settle := func() {
			time.Sleep(time.Minute) // of a clock that does not wait
			synctest.Wait()
		}
		settle()
		if got, want := seen.take(), []look{{ofReplicaSet(), true, 1}, {ofCronJob(), true, 1}}; !slices.Equal(got, want) {
			t.Fatalf("with the label the loop sees %+v, want %+v", got, want)
		}

		server.namespaces.Delete(shop())
		synctest.Wait()
		wantClosed(t, w, "as soon as the label is gone")
		settle()
		wantClosed(t, w, "while the watches end")
		if got := seen.take(); len(got) > 0 {
			t.Errorf("while the watches end the loop is woken for %+v", got)
		}

		close(server.released)
		settle()
		wantClosed(t, w, "at the end")
		got := seen.take()
		if slices.ContainsFunc(got, func(l look) bool { return l.found }) {
			t.Errorf("while the namespace is cleared the loop finds objects: %+v", got)
		}
		for _, key := range []ownership.ObjectKey{ofReplicaSet(), ofCronJob()} {
			if !slices.ContainsFunc(got, func(l look) bool { return l.key == key }) || len(w.Users(key)) > 0 {
				t.Errorf("%s is not forgotten: the loop saw %+v, and it has %d users", key, got, len(w.Users(key)))
			}
		}

		server.namespaces.Add(shop())
		settle()
		if got, want := seen.take(), []look{{ofReplicaSet(), true, 1}, {ofCronJob(), true, 1}}; !slices.Equal(got, want) {
			t.Errorf("when the label is back the loop sees %+v, want %+v", got, want)
		}
		cancel()
		running.Wait()
	})
}

func wantClosed(t *testing.T, w *ownership.Watch, when string) {
	t.Helper()
	for _, key := range []ownership.ObjectKey{ofReplicaSet(), ofCronJob()} {
		if _, found := w.Object(key); found {
			t.Errorf("%s %s can be decided on", when, key)
		}
	}
	if status := w.Status(); len(status) > 0 {
		t.Errorf("%s there are watches: %+v", when, status)
	}
}
