package cluster

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// These tests run on a real API server: what they are about, the server decides.

// startCache runs a cache on the world's namespace until it has every answer.
func startCache(t *testing.T, w *testkit.World, kubeconfig string) *Cache {
	t.Helper()
	c := NewCache(testkit.NewClient(t, kubeconfig), CacheOptions{
		Kinds: kube.Kinds(), Sources: []input.Kind{input.KindConfigMap, input.KindSecret}, Namespaces: []string{w.Namespace},
		Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {},
	})
	testkit.RunInBackground(t, func(ctx context.Context) {
		c.Run(ctx, kube.Hashers{Kinds: map[input.Kind]fingerprint.Hasher{input.KindConfigMap: {}, input.KindSecret: fingerprint.NewKeyedHasher([]byte("key"))}})
	})
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		waits := slices.ContainsFunc(c.Status(), func(s mirror.Sync) bool { return !s.Answered() })
		return !waits, fmt.Sprintf("%+v", c.Status())
	})
	return c
}

func TestCacheFollowsTheServer(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	c := startCache(t, w, w.Cluster.Kubeconfig())
	web := deploymentKey(w.Namespace, testkit.Web)
	var told testkit.Tally[kube.Key]
	c.Wake(told.Note)

	if d, ok := c.Workload(web); !ok || len(d.Refs) != 2 || d.Annotations[settings.Reload] != "auto" {
		t.Fatalf("the workload is known as %+v", d)
	}
	before, ok := c.Source(w.Namespace, input.ConfigMap("app"))
	if !ok || !before.ChangedAt.IsZero() {
		t.Fatalf("the listed source is known as %+v", before)
	}
	want := fingerprint.Hasher{}.Content(map[string]string{"key": "1"}, nil)
	if !before.Content.Equal(want) {
		t.Errorf("the content is known as %+v, want %+v", before.Content, want)
	}

	w.SetConfig(t, "app", "key", "2")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		source, _ := c.Source(w.Namespace, input.ConfigMap("app"))
		return told.Times(web) > 0, fmt.Sprintf("the change of the ConfigMap doesn't wake the workload; the cache holds %+v", source)
	})
	after, _ := c.Source(w.Namespace, input.ConfigMap("app"))
	if after.ContentWritten.Min != after.ContentWritten.Max || !after.ContentWritten.After(before.ContentWritten) {
		t.Errorf("the watched change is bounded by %+v, the state before by %+v", after.ContentWritten, before.ContentWritten)
	}
	if after.ChangedAt.IsZero() || after.DataWrittenAt.IsZero() {
		t.Errorf("the change has no time: ours %s, the server's %s", after.ChangedAt, after.DataWrittenAt)
	}

	if err := w.Client.Delete(t.Context(), w.Deployment(t, testkit.Web)); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		_, known := c.Workload(web)
		lists := c.Lists(web)
		return !known && lists, fmt.Sprintf("the cache holds the deleted workload: %t, want false; it lists the kind: %t, want true", known, lists)
	})
}

// TestReread: what the watch can't have brought yet is read with the permission to list, in the
// same form, so that only what was written differs.
func TestReread(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	account := labtest.NewAccount(t, w.Cluster, w.Namespace)
	account.Allow(t,
		labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"list", "watch"}},
		labtest.Rule{Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch"}})
	c := startCache(t, w, account.Kubeconfig)
	web := deploymentKey(w.Namespace, testkit.Web)
	// The Deployment controller may still write its status.
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		before, known := c.Workload(web)
		if !known {
			return false, "the cache doesn't hold the workload"
		}
		w.Patch(t, w.Deployment(t, testkit.Web), testkit.Web, fmt.Sprintf(`{"metadata":{"labels":{"after":%q}}}`, before.ResourceVersion))
		later, err := c.Reread(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		rebased, holds := before.Rebased(later)
		return holds && rebased.ResourceVersion != before.ResourceVersion, fmt.Sprintf("after a label, the decision holds: %t; read again as %+v, watched as %+v", holds, later, before)
	})
	before, _ := c.Workload(web)
	w.Annotate(t, testkit.Web, settings.Hold, "incident")
	later, err := c.Reread(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	if _, holds := before.Rebased(later); holds {
		t.Errorf("the decision holds after a user has forbidden it: %+v", later)
	}
	if err := w.Client.Delete(t.Context(), w.Deployment(t, testkit.Web)); err != nil {
		t.Fatal(err)
	}
	if later, err := c.Reread(t.Context(), before); err == nil {
		t.Errorf("a deleted workload is read as %+v", later)
	}
}

func TestCacheKnowsWhatItMayNotRead(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	account := labtest.NewAccount(t, w.Cluster, w.Namespace)
	account.Allow(t,
		labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
		labtest.Rule{Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch"}})
	c := startCache(t, w, account.Kubeconfig)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return c.Knows(input.KindConfigMap, w.Namespace), fmt.Sprintf("%+v", c.Status())
	})
	if c.Knows(input.KindSecret, w.Namespace) {
		t.Error("Secrets that may not be listed are taken for known")
	}
	for _, s := range c.Status() {
		if s.Resource == "secrets in "+w.Namespace && !s.Forbidden() {
			t.Errorf("the missing permission shows as %+v", s)
		}
	}
}
