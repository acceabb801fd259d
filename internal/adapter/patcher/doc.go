// Package patcher knows how to roll out a workload: by patching its pod template, by evicting
// its pods, or by touching them so the kubelets refresh their volumes.
package patcher
