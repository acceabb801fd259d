package ask_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// canary is a Rollout with a stable and a later revision, as Argo Rollouts writes them.
type canary struct {
	// abort is the status field, nil where the status lacks it.
	abort any
	phase string
	// history are the annotations rollout.argoproj.io/revision-history of both revisions.
	stable, later string
	// number is the number of the stable revision.
	number string
	// current is the hash of the workload's template.
	current string
}

// newest is the number of the revision that is current, or was tried.
func (c canary) newest() string {
	if c.current == "aa" {
		return c.number
	}
	return "2"
}

func (c canary) objects() []client.Object {
	rollout := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "1", "generation": int64(3), "annotations": map[string]any{"rollout.argoproj.io/revision": c.newest()}},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"containers": []any{}}},
		},
		"status": map[string]any{"stableRS": "aa", "currentPodHash": c.current, "phase": c.phase, "observedGeneration": "3"},
	}}
	if c.abort != nil {
		rollout.Object["status"].(map[string]any)["abort"] = c.abort
	}
	kind := kube.Rollout()
	rollout.SetGroupVersionKind(kind.GroupVersionKind)
	written := metav1.NewTime(at(9))
	rollout.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "argoproj.io/v1alpha1", Time: &written,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`),
	}})
	revision := func(hash, number, history string, created int, image string) client.Object {
		isController := true
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + hash, Labels: map[string]string{"app": "web", "rollouts-pod-template-hash": hash}, CreationTimestamp: metav1.NewTime(at(created)),
			Annotations:     map[string]string{"rollout.argoproj.io/revision": number, "rollout.argoproj.io/desired-replicas": "1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "web", UID: "1", Controller: &isController}},
		}}
		if history != "" {
			set.Annotations["rollout.argoproj.io/revision-history"] = history
		}
		set.Spec.Template = *template("", image, "")
		return set
	}
	return []client.Object{rollout, revision("aa", c.number, c.stable, 1, "app:1"), revision("bb", "2", c.later, 2, "app:2")}
}

// TestHistoryOfACanary: each turn is listed once. An aborted canary was tried, and its pods are made
// from the stable revision again.
func TestHistoryOfACanary(t *testing.T) {
	t.Parallel()
	image := func(from, to string) []ask.Change {
		return []ask.Change{{What: "image/app", From: from, To: to}}
	}
	started := turn{1, 1, "first", nil, ask.ByUnknown}
	tried := turn{2, 2, "", image("app:1", "app:2"), "kubectl-edit"}
	stable := turn{1, 1, "current", nil, ask.ByUnknown}
	for name, tc := range map[string]struct {
		reason  string
		canary  canary
		want    []turn
		outcome map[int64]string
	}{
		"Rolling": {
			"new pods are made from the canary",
			canary{phase: "Paused", number: "1", current: "bb"},
			[]turn{{2, 2, "current", image("app:1", "app:2"), "kubectl-edit"}, started},
			map[int64]string{2: "paused"},
		},
		"Aborted": {
			"the template is the one that was tried, so the outcome and the writer are those of its revision",
			canary{abort: true, phase: "Degraded", number: "1", current: "bb"},
			[]turn{tried, stable},
			map[int64]string{2: "failed"},
		},
		"AbortedAndReleased": {
			"Argo Rollouts repeats the number when it copies an annotation, such as the release, to the ReplicaSet",
			canary{abort: true, phase: "Degraded", number: "1", current: "bb", later: "2"},
			[]turn{tried, stable},
			map[int64]string{2: "failed"},
		},
		"Retried": {
			"the annotation changed several times; new pods are made from the canary again",
			canary{abort: false, phase: "Paused", number: "1", current: "bb", later: "2,2", stable: "1"},
			[]turn{{2, 2, "current", image("app:1", "app:2"), "kubectl-edit"}, started},
			map[int64]string{2: "paused"},
		},
		"Undone": {
			"the stable revision got a new number: a turn of its own",
			canary{phase: "Healthy", number: "3", current: "aa", later: "2", stable: "1,1"},
			[]turn{{3, -1, "current again", image("app:2", "app:1"), "kubectl-edit"}, {2, 2, "", image("app:1", "app:2"), ask.ByUnknown}, started},
			map[int64]string{3: "healthy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake.NewClientBuilder().WithScheme(ownScheme(t)).WithObjects(tc.canary.objects()...).WithReturnManagedFields().Build()
			r := ask.Reader{Client: c, Now: time.Now}
			h, err := r.History(t.Context(), kube.Rollout(), client.ObjectKey{Namespace: "shop", Name: "web"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, turns(h)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\nnotes: %q", tc.reason, diff, h.Notes)
			}
			outcome := map[int64]string{}
			for _, r := range h.Revisions {
				if r.Outcome != "" {
					outcome[r.Number] = r.Outcome
				}
			}
			if diff := cmp.Diff(tc.outcome, outcome); diff != "" {
				t.Errorf("%s: outcomes (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// ownScheme is a scheme of this test alone: the client adds the kinds to it that it reads.
func ownScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}
