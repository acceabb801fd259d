package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// remote is a Deployment with 60 ConfigMaps, behind a line with a latency of 80 ms.
type remote struct {
	// fails are the names of the ConfigMaps that can't be read.
	fails string
	// inFlight counts the requests at this moment, and most is its maximum.
	inFlight, most atomic.Int64
}

func (r *remote) read(t *testing.T) (*cluster.Live, time.Duration, error) {
	t.Helper()
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	objects := []client.Object{web, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	for i := range 60 {
		name := fmt.Sprintf("app-%02d", i)
		web.Spec.Template.Spec.Volumes = append(web.Spec.Template.Spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
		})
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"key": name}})
	}
	c := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, at client.ObjectKey, o client.Object, options ...client.GetOption) error {
			r.most.Store(max(r.most.Load(), r.inFlight.Add(1)))
			defer r.inFlight.Add(-1)
			time.Sleep(80 * time.Millisecond)
			if strings.Contains(r.fails, at.Name) {
				return errors.New("the connection broke")
			}
			return c.Get(ctx, at, o, options...)
		},
	}).Build()
	live := cluster.NewLive(c, kube.NewHashers(nil), kube.Deployment(), client.ObjectKey{Namespace: "shop", Name: "web"}, time.Now)
	began := time.Now()
	err := live.Read(t.Context())
	return live, time.Since(began), err
}

// TestManySourcesAreReadInParallel: within the patience of a page, and not all at once.
func TestManySourcesAreReadInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &remote{}
		live, took, err := r.read(t)
		if err != nil || took >= 2*time.Second || r.most.Load() > 8 {
			t.Errorf("60 sources took %s, with up to %d requests at once: %v", took, r.most.Load(), err)
		}
		for i := range 60 {
			id := input.ConfigMap(fmt.Sprintf("app-%02d", i))
			if s, found := live.Source("shop", id); !found || s.ID != id {
				t.Errorf("%s wasn't read", id)
			}
		}
	})
}

// TestTheFirstErrorCounts: of several sources that can't be read, the error names the first.
func TestTheFirstErrorCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, err := (&remote{fails: "app-40 app-07 app-58"}).read(t)
		if err == nil || err.Error() != "read configmap/app-07: the connection broke" {
			t.Errorf("the error is %v", err)
		}
	})
}
