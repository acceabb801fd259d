package kube

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/health"
)

// Labels and annotations that Argo Rollouts writes.
const (
	rolloutHashLabel          = "rollouts-pod-template-hash"
	rolloutWorkloadGeneration = "rollout.argoproj.io/workload-generation"
)

// rolloutCurrent finds the ReplicaSet with the hash that Argo publishes.
func rolloutCurrent(w client.Object, revisions []client.Object) client.Object {
	hash, _, _ := unstructured.NestedString(w.(*unstructured.Unstructured).Object, "status", "currentPodHash")
	return withHash(revisions, w.GetName(), hash)
}

// withHash finds the ReplicaSet by its hash label, or else by its name: labels can be edited.
func withHash(all []client.Object, rollout, hash string) client.Object {
	if hash == "" {
		return nil
	}
	for _, o := range all {
		if o.GetLabels()[rolloutHashLabel] == hash {
			return o
		}
	}
	return named(all, rollout+"-"+hash)
}

func rolloutStatus(w client.Object) Progress {
	o := w.(*unstructured.Unstructured)
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	invalid := rolloutInvalid(o)
	s := Progress{Status: health.Status{Observed: rolloutObserved(o) && !invalid, Paused: paused, Invalid: invalid}}
	fields, _, _ := unstructured.NestedMap(o.Object, "status")
	s.Phase, _ = fields["phase"].(string)
	s.Counted, s.Counts = true, rolloutCounts(o, fields)
	s.PodHash, _ = fields["currentPodHash"].(string)
	s.StableHash, _ = fields["stableRS"].(string)
	s.Aborted, _ = fields["abort"].(bool)
	s.BorrowedGeneration, _ = generationIn(fields, "workloadObservedGeneration")
	return s
}

// rolloutObserved compares generations. Argo stores the observed one as text. A value that isn't
// a number, or is from an earlier object, was written by a controller so old that it didn't
// compare generations.
func rolloutObserved(o *unstructured.Unstructured) bool {
	text, _, _ := unstructured.NestedString(o.Object, "status", "observedGeneration")
	if text == "" {
		return false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n < o.GetGeneration() {
		return false
	}
	wanted, follows := o.GetAnnotations()[rolloutWorkloadGeneration]
	if !follows {
		return true
	}
	seen, _, _ := unstructured.NestedString(o.Object, "status", "workloadObservedGeneration")
	return seen == wanted
}

// rolloutInvalid reports whether Argo refuses to act on the Rollout: its spec is wrong or
// references something that does not exist. Argo then marks the generation as observed and keeps
// the previous hash.
func rolloutInvalid(o *unstructured.Unstructured) bool {
	fields, _, _ := unstructured.NestedMap(o.Object, "status")
	return conditionIn(fields, "InvalidSpec") == health.True
}

// rolloutCounts are the pods of a Rollout.
func rolloutCounts(o *unstructured.Unstructured, status map[string]any) health.Counts {
	count := func(field string) int {
		n, _ := status[field].(int64)
		return int(n)
	}
	wanted, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !found {
		wanted = 1
	}
	return health.Counts{
		Wanted: int(wanted), Existing: count("replicas"), Updated: count("updatedReplicas"), Available: count("availableReplicas"),
	}
}
