package run

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/damping"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestSweepChanges: a stop stays while a workload can be due for its version, and while the namespace isn't watched. It
// leaves with the version. A user who resumes the version keeps it on record, and it isn't counted as stopped.
func TestSweepChanges(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	o := &Options{Reload: true, Words: settings.Native{Defaults: settings.Defaults{Auto: true}}, Now: time.Now, Scope: Scope{
		Kinds: []kube.Kind{kube.Deployment()}, Selector: labels.SelectorFromSet(labels.Set{"team": w.Namespace}),
	}}
	o.Own.Namespace, o.Own.Record = w.Own, "state"
	p := newParts(o, testkit.NewClient(t, w.Cluster.Kubeconfig()), logr.Discard())
	hashers := kube.Hashers{Kinds: map[input.Kind]fingerprint.Hasher{input.KindConfigMap: {}, input.KindSecret: {}}}
	testkit.RunInBackground(t, func(ctx context.Context) { p.cache.Run(ctx, hashers) })
	app := input.ConfigMap("app")
	watch := func(team string) {
		t.Helper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"`+team+`"}}}`))
		if err := w.Client.Patch(t.Context(), ns, patch); err != nil {
			t.Fatal(err)
		}
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			return p.cache.KnowsNamespaces() && p.cache.ListsAll(w.Namespace) == (team == w.Namespace), "the namespace isn't listed, or still watched"
		})
	}
	current := func() input.Change {
		t.Helper()
		s, ok := p.cache.Source(w.Namespace, app)
		if !ok {
			t.Fatal("the ConfigMap isn't in the cache")
		}
		return configs.ChangeOf(s, false)
	}
	expect := func(why string, c input.Change, wantFailure, wantStop bool) {
		t.Helper()
		p.sweepChanges()
		if got, stopped := len(p.records.Failure(c).On) > 0, p.bars(c); got != wantFailure || stopped != wantStop {
			t.Errorf("%s: on record %t, stopped %t; want %t, %t", why, got, stopped, wantFailure, wantStop)
		}
	}
	changed := func(f func(*kube.Source) bool) {
		t.Helper()
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			s, ok := p.cache.Source(w.Namespace, app)
			return ok && f(s), "the cache doesn't have the change"
		})
	}

	watch(w.Namespace)
	c := current()
	p.records.AddFailure(c, "Deployment.apps/"+w.Namespace+"/gone", time.Now())
	p.records.PutSeries(c.Subject(), record.Series{Version: "1", State: damping.State{Level: 5, Last: time.Now()}})
	expect("workloads can be due for it", c, true, true)
	if _, damped := p.records.Series(c.Subject()); damped {
		t.Error("without damping, a series stays on record")
	}
	watch("other")
	expect("nothing shows its workloads", c, true, false)
	watch(w.Namespace)
	expect("the namespace is back", c, true, true)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: app.Name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+settings.Resume+`":"`+c.Version+`"}}}`))
	if err := w.Client.Patch(t.Context(), cm, patch); err != nil {
		t.Fatal(err)
	}
	changed(func(s *kube.Source) bool { return s.Annotations[settings.Resume] != "" })
	expect("a user resumed it", c, true, false)
	w.SetConfig(t, app.Name, "key", "another")
	changed(func(s *kube.Source) bool { return configs.ChangeOf(s, false) != c })
	expect("no source has it", c, false, false)
}
