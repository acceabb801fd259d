package kube

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// TestWorkloadKnowsItsList: one that came with a list keeps that, until another one
// takes its name.
func TestWorkloadKnowsItsList(t *testing.T) {
	t.Parallel()
	m := mirror.New(mirror.Options[*Workload]{
		Slim:    func(o any) (*Workload, error) { return SlimWorkload(Deployment(), o, settings.Native{}) },
		Changed: func(_, _ *Workload) {}, Now: time.Now,
	})
	named := func(name, uid, version string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
	}
	for _, step := range []struct {
		reason string
		do     func() error
		name   string
		want   timeline.Bounds
	}{
		{"a list brings it", func() error { return m.Replace([]any{named("a", "1", "10")}, "20") }, "a", timeline.Bounds{Max: 20}},
		{"a watch follows", func() error { return m.Update(named("a", "1", "30")) }, "a", timeline.Bounds{Max: 20}},
		{"so does another list", func() error { return m.Replace([]any{named("a", "1", "30")}, "40") }, "a", timeline.Bounds{Max: 20}},
		{"made before our eyes", func() error { return m.Add(named("b", "2", "50")) }, "b", timeline.Bounds{}},
		{"another one of the name", func() error { return m.Update(named("a", "3", "60")) }, "a", timeline.Bounds{}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if w, ok := m.Get("", step.name); !ok || w.Listed != step.want {
			t.Errorf("%s: %+v, want %+v", step.reason, w, step.want)
		}
	}
}

// TestReplicas: how many pods a workload wants, as far as it says.
func TestReplicas(t *testing.T) {
	t.Parallel()
	three := int32(3)
	cases := map[string]struct {
		reason string
		kind   Kind
		object client.Object
		want   int
	}{
		"Deployment":        {"as its specification says", Deployment(), &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &three}}, 3},
		"DeploymentDefault": {"one, when it does not", Deployment(), &appsv1.Deployment{}, 1},
		"StatefulSet":       {"as its specification says", StatefulSet(), &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &three}}, 3},
		"DaemonSet":         {"as its controller counts the nodes", DaemonSet(), &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3}}, 3},
		"Custom":            {"where it is usual", worker(), &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(3)}}}, 3},
		"CustomElsewhere":   {"it does not say", worker(), &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"instances": int64(3)}}}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.kind.Replicas(tc.object); got != tc.want {
				t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
