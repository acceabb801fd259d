package ownership

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestALargeRevisionWakesItsNamespace: it may use any object there, so each is decided on when it
// comes and when it goes.
func TestALargeRevisionWakesItsNamespace(t *testing.T) {
	t.Parallel()
	cache := cluster.NewCache(nil, cluster.CacheOptions{Kinds: kube.Kinds(), Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {}})
	w := New(cache, Options{Now: time.Now, Report: func(mirror.Sync) {}})
	a := w.Enter("").(*area)
	for _, m := range a.objects {
		var all []any
		for _, namespace := range []string{"blog", "shop"} {
			all = append(all, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}})
		}
		if err := m.Replace(all, "1"); err != nil {
			t.Fatal(err)
		}
	}
	a.setOpen()
	var woken []string
	w.add = func(key ObjectKey) { woken = append(woken, key.String()) }
	h := &lineage.Holder{Namespace: "shop", Name: "web-1", UID: "web-1", ControllerUID: "web", TooLarge: true}
	for _, change := range [][2]*lineage.Holder{{nil, h}, {h, nil}} {
		woken = nil
		w.holderChanged(change[0], change[1])
		if slices.Sort(woken); !slices.Equal(woken, []string{"configmap/app in namespace shop", "secret/app in namespace shop"}) {
			t.Errorf("from %v to %v wakes %q, want both objects of its namespace", change[0], change[1], woken)
		}
	}
}
