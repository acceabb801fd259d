package cluster

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// lendingCache is a cache with a Deployment whose template Rollouts use. Nobody watches:
// the tests bring the events.
type lendingCache struct {
	*Cache
	woken map[string]int
}

func newLending(t *testing.T) *lendingCache {
	t.Helper()
	c := &lendingCache{
		Cache: NewCache(nil, CacheOptions{Kinds: kube.Kinds(), Vocabulary: settings.Native{}, Now: time.Now, Report: func(mirror.Sync) {}}),
		woken: map[string]int{},
	}
	c.Wake(func(key kube.Key) { c.woken[key.Name]++ })
	return c
}

func (l *lendingCache) mirrorOf(kind kube.Kind) *mirror.Mirror[*kube.Workload] {
	a, _ := l.areas.Of("shop")
	return a.workloads[kind.GroupKind()]
}

func lender(resourceVersion string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lender", ResourceVersion: resourceVersion}}
}

func borrower(name, kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": kind, "name": "lender"},
	}}}
	o.SetGroupVersionKind(kube.Rollout().GroupVersionKind)
	o.SetNamespace("shop")
	o.SetName(name)
	return o
}

func key(kind kube.Kind, name string) kube.Key {
	return kube.Key{GroupKind: kind.GroupKind(), Namespace: "shop", Name: name}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTwoBorrowers: two Rollouts may use one Deployment, and one of them may go.
func TestTwoBorrowers(t *testing.T) {
	t.Parallel()
	l := newLending(t)
	deployments, rollouts := l.mirrorOf(kube.Deployment()), l.mirrorOf(kube.Rollout())
	must(t, deployments.Add(lender("1")))
	for _, name := range []string{"canary", "other"} {
		must(t, rollouts.Add(borrower(name, "Deployment")))
	}
	clear(l.woken)
	must(t, deployments.Delete(lender("1")))
	if l.woken["canary"] != 1 || l.woken["other"] != 1 {
		t.Errorf("the Deployment's end wakes %v, want both Rollouts", l.woken)
	}
	must(t, deployments.Add(lender("2")))

	must(t, rollouts.Delete(borrower("canary", "Deployment")))
	if _, own := l.Workload(key(kube.Deployment(), "lender")); own {
		t.Error("the kube.Deployment counts as a workload of its own while a kube.Rollout uses its template")
	}
	clear(l.woken)
	must(t, deployments.Delete(lender("2")))
	if l.woken["other"] != 1 || l.woken["canary"] != 0 {
		t.Errorf("the Deployment's end wakes %v, want the kube.Rollout that is left", l.woken)
	}

	must(t, deployments.Add(lender("3")))
	must(t, rollouts.Delete(borrower("other", "Deployment")))
	if _, own := l.Workload(key(kube.Deployment(), "lender")); !own {
		t.Error("nobody uses the Deployment's template any more, and it is no workload of its own")
	}
}

// TestBorrowerWithoutTemplate: a template that cannot be seen is not one that uses
// nothing, so the workload says what is wrong.
func TestBorrowerWithoutTemplate(t *testing.T) {
	t.Parallel()
	l := newLending(t)
	deployments, rollouts := l.mirrorOf(kube.Deployment()), l.mirrorOf(kube.Rollout())
	must(t, rollouts.Add(borrower("canary", "Deployment")))
	must(t, rollouts.Add(borrower("strange", "ReplicaSet")))
	for name, want := range map[string]string{"canary": "deployment/lender in namespace ", "strange": "ReplicaSet"} {
		if w, ok := l.Workload(key(kube.Rollout(), name)); !ok || !strings.Contains(w.Problem, want) {
			t.Errorf("%s is found: %t, with the problem %q, want one that names %q", name, ok, w.Problem, want)
		}
	}
	must(t, deployments.Add(lender("1")))
	if w, ok := l.Workload(key(kube.Rollout(), "canary")); !ok || w.Problem != "" || w.Target.Kind.GroupKind() != kube.Deployment().GroupKind() {
		t.Errorf("with its kube.Deployment it is %+v", w)
	}
}
