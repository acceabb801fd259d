package configs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
)

// TestChange: workloads that use the same version of a source take part in the same change.
func TestChange(t *testing.T) {
	t.Parallel()
	app, db := input.ConfigMap("app"), input.Secret("db")
	keyed := fingerprint.NewKeyedHasher([]byte("k"))
	digest := func(namespace string, id input.ID, shared bool, keys int) input.Change {
		values := map[string]string{"key": "1"}
		for i := range keys {
			values[fmt.Sprintf("a-rather-long-key-%04d", i)] = ""
		}
		s := &kube.Source{Namespace: namespace, ID: id, Content: fingerprint.Hasher{}.Content(values, nil)}
		if id.Kind == input.KindSecret {
			s.Content = keyed.At(namespace, string(id.Kind), id.Name).Content(values, nil)
		}
		w := web()
		w.Key.Namespace, w.Refs = namespace, []podrefs.Ref{{Source: id, Keys: fingerprint.SomeKeys("key")}}
		all, err := configs.New(configs.Options{
			View: clusterOf(s), Since: func(*kube.Workload, input.Kind) (time.Time, bool) { return at(5), true },
			Shared: func(other input.ID) bool { return shared && other == id },
		}).Assess(t.Context(), w, reload("auto"), record.Entry{}, (&history{}).ask)
		if err != nil || len(all.Findings) != 1 {
			t.Fatalf("%+v, error %v", all, err)
		}
		got := all.Findings[0].Change
		if shown := s.Content.Version(fingerprint.AllKeys()).Short(); (got.Version == shown) != (!shared || id.Kind == input.KindConfigMap) {
			t.Errorf("%s in %s: version %s, and templates show %s", id, namespace, got.Version, shown)
		}
		return got
	}
	for name, tc := range map[string]struct {
		reason string
		id     input.ID
		shared bool
		keys   int
		same   bool
		want   input.Change // in namespace shop, without the version
	}{
		"ConfigMap":       {"of its namespace", app, false, 0, false, input.Change{Namespace: "shop", ID: app}},
		"Secret":          {"of its namespace", db, false, 0, false, input.Change{Namespace: "shop", ID: db}},
		"SharedConfigMap": {"of all namespaces", app, true, 0, true, input.Change{ID: app}},
		"SharedSecret":    {"its digest doesn't depend on the namespace, and isn't the one that templates show", db, true, 0, true, input.Change{ID: db}},
		"ManyKeys":        {"the whole is known even when its keys aren't kept", app, false, 1000, false, input.Change{Namespace: "shop", ID: app}},
		"SharedManyKeys":  {"the same for a Secret", db, true, 1000, true, input.Change{ID: db}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop, blog := digest("shop", tc.id, tc.shared, tc.keys), digest("blog", tc.id, tc.shared, tc.keys)
			if shop.Subject() != tc.want || len(shop.Version) != 10 {
				t.Errorf("%s: %+v, want %+v with a version", tc.reason, shop, tc.want)
			}
			if (shop == blog) != tc.same {
				t.Errorf("%s: %+v and %+v, want the same: %t", tc.reason, shop, blog, tc.same)
			}
		})
	}
	all, err := inputs(clusterOf()).Assess(t.Context(), web(), reload("auto"), record.Entry{}, (&history{}).ask)
	if err != nil || len(all.Findings) != 1 || !all.Findings[0].Change.IsZero() {
		t.Errorf("a source that doesn't exist: %+v, error %v; want no change", all.Findings, err)
	}
}
