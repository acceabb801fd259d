package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestChosenNamespacesAreWatched: as soon as the namespaces count as listed, those
// that were chosen are being watched. A workload on record would else be looked for
// where nobody looks, and never be forgotten when it is gone.
func TestChosenNamespacesAreWatched(t *testing.T) {
	t.Parallel()
	known := false
	var c *Cache
	c = NewCache(nil, CacheOptions{
		Kinds: kube.Kinds(), Selector: labels.Everything(), Vocabulary: settings.Native{}, Now: time.Now,
		Report: func(mirror.Sync) {
			known = c.Defaults()
			if c.Settled(key(kube.Deployment(), "web")) {
				t.Error("a workload counts as settled before anybody listed its namespace")
			}
		},
	})
	c.begin = func(*area) {}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: "1"}}
	if err := c.namespaces.Replace([]any{shop}, "1"); err != nil || !known {
		t.Errorf("the namespaces count as listed: %t, error %v", known, err)
	}
}

// TestSettledTogether: with changes that namespaces share, the rollouts of every namespace have to be
// known before the first workload gets its turn.
func TestSettledTogether(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{false, true} {
		c := NewCache(nil, CacheOptions{
			Kinds: []kube.Kind{kube.Deployment()}, Namespaces: []string{"blog", "shop"}, Vocabulary: settings.Native{},
			Together: together, Now: time.Now, Report: func(mirror.Sync) {},
		})
		web := key(kube.Deployment(), "web")
		list := func(namespace string) {
			a, _ := c.areas.Of(namespace)
			if err := a.workloads[kube.Deployment().GroupKind()].Replace(nil, "1"); err != nil {
				t.Fatal(err)
			}
		}
		if c.Settled(web) {
			t.Error("a workload counts as settled before anybody listed its namespace")
		}
		if list(web.Namespace); c.Settled(web) == together {
			t.Errorf("together=%t: settled is %t after its own namespace", together, !together)
		}
		if list("blog"); !c.Settled(web) {
			t.Errorf("together=%t: a workload isn't settled after all namespaces", together)
		}
	}
}
