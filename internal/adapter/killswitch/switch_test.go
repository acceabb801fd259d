package killswitch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/killswitch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestSwitch: from the first list on, the switch says what the ConfigMap says, and wakes the
// workloads for which that changed.
func TestSwitch(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	var woken woken
	s := killswitch.New(killswitch.Options{Namespace: w.Own, Now: time.Now, Workloads: func(visit func(*kube.Workload)) {
		for _, namespace := range []string{"shop", "blog"} {
			visit(&kube.Workload{Identity: kube.Identity{Key: kube.Key{Namespace: namespace, Name: "web"}}})
		}
	}})
	if s.Status().Answered() {
		t.Error("it has been read before it was watched")
	}
	s.Wake(woken.add)
	testkit.RunInBackground(t, func(ctx context.Context) { s.Watch(ctx, testkit.NewClient(t, w.Cluster.Kubeconfig())) })
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { return s.Status().Works(), fmt.Sprintf("%+v", s.Status()) })
	stopped := func(want ...string) {
		t.Helper()
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			var got []string
			for _, namespace := range []string{"shop", "blog"} {
				if reason, is := s.For(namespace); is {
					got = append(got, namespace+":"+reason)
				}
			}
			return slices.Equal(got, want), fmt.Sprintf("stopped are %q, want %q", got, want)
		})
	}
	wakes := func(want ...string) {
		t.Helper()
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			got := woken.list()
			return slices.Equal(got, want), fmt.Sprintf("woken are %q, want %q", got, want)
		})
		woken.reset()
	}
	stopped()

	empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Own, Name: settings.StopName}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Own, Name: "other"}, Data: map[string]string{"all": "not meant"}}
	for _, o := range []client.Object{other, empty} {
		if err := w.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	stopped("shop:", "blog:")
	wakes("shop", "blog")
	<-s.Changes()

	write := func(patch string) {
		t.Helper()
		if err := w.Client.Patch(t.Context(), empty, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"data":{"namespace.shop":"freeze"}}`)
	stopped("shop:freeze")
	wakes("shop", "blog") // shop for another reason, and blog not any more
	if got := s.State().Object.ResourceVersion; got != empty.ResourceVersion {
		t.Errorf("the state is of version %s, want %s", got, empty.ResourceVersion)
	}
	const metric = "# HELP lockstep_stopped 1 while automatic changes in the namespace are stopped (lockstep stop). The namespace is * if all namespaces are stopped.\n# TYPE lockstep_stopped gauge\n"
	if err := testutil.CollectAndCompare(s, strings.NewReader(metric+`lockstep_stopped{namespace="shop"} 1`+"\n")); err != nil {
		t.Error(err)
	}

	if err := w.Client.Delete(t.Context(), empty); err != nil {
		t.Fatal(err)
	}
	stopped()
	wakes("shop")
}

// woken are the namespaces of workloads that were woken.
type woken struct {
	mu  sync.Mutex
	all []string
}

func (w *woken) add(key kube.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, key.Namespace)
}

func (w *woken) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func (w *woken) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = nil
}
