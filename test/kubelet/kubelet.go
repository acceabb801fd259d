// Package kubelet plays the kubelet on a control plane without nodes: it reports pods as running
// and ready, or leaves them. The controllers of Kubernetes count these pods like real ones, so
// rollouts complete and fail.
package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scheduler is the scheduler name of pods that only this package runs. The scheduler of a control
// plane would assign them to a node, where another program reports their state.
const Scheduler = "none"

// ready is the status of a pod whose containers run.
const ready = `{"status":{"phase":"Running","conditions":[` +
	`{"type":"Initialized","status":"True"},{"type":"ContainersReady","status":"True"},{"type":"Ready","status":"True"}]}}`

// Play makes every pod of a namespace ready that isn't assigned to a node. Pods that refuses
// selects stay as they are, like pods whose containers crash. Play calls refuses once for each pod,
// from one goroutine. It returns nil when the context ends.
func Play(ctx context.Context, c client.WithWatch, namespace string, refuses func(*corev1.Pod) bool) error {
	seen := map[types.UID]bool{}
	for ctx.Err() == nil {
		err := watch(ctx, c, namespace, func(pod *corev1.Pod) error {
			if seen[pod.UID] || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
				return nil
			}
			seen[pod.UID] = true
			if refuses(pod) {
				return nil
			}
			return client.IgnoreNotFound(c.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(ready))))
		})
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("play the kubelet in namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// watch handles the present pods and further ones until the API server ends the watch.
func watch(ctx context.Context, c client.WithWatch, namespace string, handle func(*corev1.Pod) error) error {
	events, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return nil // the watch reports an error, and a new one begins
		}
		if err := handle(pod); err != nil {
			return err
		}
	}
	return nil
}
