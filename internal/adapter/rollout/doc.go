// Package rollout knows how a workload is moved: by a patch of its pod template, by
// evicting its pods, or by touching them so that the kubelets refresh their volumes.
package rollout
