package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
)

// readPending searches the pods that haven't started for containers that run as root and may not.
func (f *Facts) readPending(ctx context.Context, o Options) {
	pending := client.MatchingFields{"status.phase": string(corev1.PodPending)}
	for _, ns := range o.Watched {
		for object, err := range pages.Items(ctx, o.Client, &corev1.PodList{}, client.InNamespace(ns), pending) {
			if err != nil {
				f.Workloads.PodsErr = fmt.Errorf("list %s: %w", kube.ResourceName("Pod", ns), err)
				return
			}
			f.Workloads.AsRoot = append(f.Workloads.AsRoot, asRoot(object.(*corev1.Pod))...)
		}
	}
}

// asRoot are the containers of a pod that the kubelet doesn't start because of runAsNonRoot.
func asRoot(pod *corev1.Pod) []string {
	var refused []string
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason == "CreateContainerConfigError" && strings.Contains(w.Message, "runAsNonRoot") {
			refused = append(refused, fmt.Sprintf("pod/%s in namespace %s: container %s", pod.Name, pod.Namespace, c.Name))
		}
	}
	return refused
}

func checkPods(f Facts) Check {
	if f.Workloads.PodsErr != nil {
		return unread(Pods, f.Workloads.PodsErr)
	}
	refused := f.Workloads.AsRoot
	if len(refused) == 0 {
		return ok(Pods, "runAsNonRoot doesn't prevent a container from starting")
	}
	return Check{
		Name: Pods, Result: Warning, Details: some(refused),
		Found: counted(len(refused), "container") + " cannot start: runAsNonRoot is set, and the image runs as root or doesn't set its user by number",
		Do: "use an image that runs without root, or set podSecurityContext.runAsUser; for an image that needs root, set podSecurityContext and securityContext to null " +
			"(values of charts/app)",
	}
}
