package lineage

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// read is the workload as it is now.
func read(t *testing.T, w *testkit.World, kind kube.Kind, o client.Object) *kube.Workload {
	t.Helper()
	live := cluster.NewLive(w.Client, kube.Hashers{}, kind, client.ObjectKeyFromObject(o), time.Now)
	if err := live.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	workload, _ := live.Workload(live.Key())
	return workload
}

// move gives a workload a version, on what it is by then: the controllers of the
// cluster write its status meanwhile.
func move(t *testing.T, w *testkit.World, kind kube.Kind, o client.Object, version string) {
	t.Helper()
	order := input.Order{All: []input.Finding{{ID: input.ConfigMap("app"), Versions: input.Versions{Shows: input.Tracked(version)}, Live: true}}}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		_, err := patcher.NewPatcher(w.Client, patcher.AsAnnotation).RollOut(t.Context(), read(t, w, kind, o), order)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err == nil, fmt.Sprintf("every move fails: %v", err)
	})
}

// workloadOf is a workload of a kind with the pods of a Deployment.
func workloadOf(kind string) (kube.Kind, client.Object) {
	d := testkit.Deployment(testkit.Web, "app", "")
	switch kind {
	case "StatefulSet":
		return kube.StatefulSet(), &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.StatefulSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}}
	case "DaemonSet":
		d.Spec.Template.Spec.NodeSelector = map[string]string{"no": "node"}
		return kube.DaemonSet(), &appsv1.DaemonSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template}}
	}
	return kube.Deployment(), d
}

func TestRevisionsShowWhatTheyWereGiven(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t)
			kind, object := workloadOf(name)
			w.Create(t, object)
			w.Create(t, strangersRevision(t, w))
			if got := awaitRevisions(t, w, kind, object, 1); len(got[0].Shown) > 0 {
				t.Errorf("the first revision shows %d inputs", len(got[0].Shown))
			}
			move(t, w, kind, object, "1111111111")
			moved := 0
			for _, r := range awaitRevisions(t, w, kind, object, 2) {
				moved += len(r.Shown)
				if len(r.Shown) > 0 && !r.Shown.Show(input.ConfigMap("app"), input.Tracked("1111111111")) {
					t.Errorf("revision %s doesn't show the moved input", r.Name)
				}
				if r.Created.IsZero() || r.Name == "" {
					t.Errorf("revision %+v", r)
				}
			}
			if moved != 1 {
				t.Errorf("the revisions show %d inputs, want none and the moved one", moved)
			}
		})
	}
}

// strangersRevision is a ReplicaSet that the selector of "web" finds and that
// belongs to another controller.
func strangersRevision(t *testing.T, w *testkit.World) *appsv1.ReplicaSet {
	t.Helper()
	owner, yes := testkit.ConfigMap("owner", "key", "1"), true
	w.Create(t, owner)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "stranger", Labels: map[string]string{"app": testkit.Web}}}
	rs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &yes}}
	d := testkit.Deployment("stranger", "", "")
	rs.Spec = appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}
	return rs
}

func awaitRevisions(t *testing.T, w *testkit.World, kind kube.Kind, object client.Object, count int) []timeline.Revision {
	t.Helper()
	var found []timeline.Revision
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		past, err := Revisions(t.Context(), w.Client, read(t, w, kind, object))
		found = past.Revisions
		return err == nil && len(found) == count, fmt.Sprintf("%d revisions, want %d; error %v", len(found), count, err)
	})
	return found
}
