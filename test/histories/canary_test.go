package histories_test

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/test/histories"
)

// A Rollout has no Go type here. But for its strategy and its status it has the fields of a
// Deployment, so whoever reads or changes one does that with a Deployment. So it is with a
// StatefulSet.

const (
	canaryRevisionKey = "rollout.argoproj.io/revision"
	canaryHashLabel   = "rollouts-pod-template-hash"
	canaryLenderKey   = "rollout.argoproj.io/workload-generation"
)

// kindFor is the kind of the workload of a history.
func kindFor(h histories.History) kube.Kind {
	if h.Edits {
		return kindOfHistory(h.Kind)
	}
	if h.Stateful {
		return kube.StatefulSet()
	}
	return kindOf(h.Canary)
}

func kindOf(canary bool) kube.Kind {
	if canary {
		return kube.Rollout()
	}
	return kube.Deployment()
}

// asDeployment is a workload as a Deployment, nil for any other object.
func asDeployment(o client.Object) *appsv1.Deployment {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o
	case *appsv1.StatefulSet:
		return fromStatefulSet(o)
	case *appsv1.DaemonSet:
		return fromDaemonSet(o)
	case *batchv1.CronJob:
		return fromCronJob(o)
	case *unstructured.Unstructured:
		fields := maps.Clone(o.Object) // the converter copies what is below
		delete(fields, "status")
		spec := maps.Clone(fields["spec"].(map[string]any))
		delete(spec, "strategy")
		delete(spec, "workloadRef")
		fields["spec"] = spec
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, d); err != nil {
			panic(err)
		}
		return d
	}
	return nil
}

// asRollout is a Rollout with the specification of a Deployment, and with a canary that
// waits for a person.
func asRollout(d *appsv1.Deployment) *unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		panic(err)
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetGroupVersionKind(kube.Rollout().GroupVersionKind)
	delete(fields, "status")
	steps := []any{map[string]any{"setWeight": int64(50)}, map[string]any{"pause": map[string]any{}}}
	fields["spec"].(map[string]any)["strategy"] = map[string]any{"canary": map[string]any{"steps": steps}}
	return o
}

// canaryStatus is what the controller of Argo Rollouts says of a Rollout, as far as
// histories need it.
type canaryStatus struct {
	ObservedGeneration string `json:"observedGeneration,omitempty"`
	// LenderGeneration is that of the Deployment whose template it uses.
	LenderGeneration  string `json:"workloadObservedGeneration,omitempty"`
	CurrentPodHash    string `json:"currentPodHash,omitempty"`
	StableRS          string `json:"stableRS,omitempty"`
	Abort             bool   `json:"abort,omitempty"`
	PromoteFull       bool   `json:"promoteFull,omitempty"`
	Phase             string `json:"phase,omitempty"`
	Replicas          int32  `json:"replicas,omitempty"`
	UpdatedReplicas   int32  `json:"updatedReplicas,omitempty"`
	AvailableReplicas int32  `json:"availableReplicas,omitempty"`
}

func statusOf(o *unstructured.Unstructured) canaryStatus {
	status := canaryStatus{}
	fields, _ := o.Object["status"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status); err != nil {
		panic(err)
	}
	return status
}

// hasActed reports whether the controller of Argo Rollouts has done everything for a Rollout
// as it is: also for what a person wrote into its status.
func hasActed(o *unstructured.Unstructured) bool {
	s := statusOf(o)
	waits := s.Phase == "Paused" || s.Phase == "Healthy"
	if s.Abort {
		waits = s.Phase == "Degraded"
	}
	return s.ObservedGeneration == strconv.FormatInt(o.GetGeneration(), 10) && s.CurrentPodHash != "" && s.StableRS != "" && !s.PromoteFull && waits
}

// addCanary adds to a fact what the status of a Rollout says. An abort is one of the
// template that its controller has acted on.
func addCanary(w *histories.Workload, o *unstructured.Unstructured, sets []*appsv1.ReplicaSet) {
	status := statusOf(o)
	w.Older, w.Running = status.Replicas > status.UpdatedReplicas, status.UpdatedReplicas > 0
	if status.StableRS == status.CurrentPodHash {
		return
	}
	templates := map[string]string{}
	for _, rs := range sets {
		templates[rs.Labels[canaryHashLabel]] = templateOf(rs)
	}
	switch {
	case status.Abort && templates[status.CurrentPodHash] == w.Template:
		w.Stable = templates[status.StableRS]
	case !status.Abort && w.Older:
		w.Beside = templates[status.StableRS]
	}
}

// templateOf is the template of a revision, as the workload has it.
func templateOf(rs *appsv1.ReplicaSet) string {
	return templateText(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: rs.Spec.Template}})
}
