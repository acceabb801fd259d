// Package kube defines the parts of Kubernetes objects that Lockstep keeps: workloads of every
// kind behind one type, ConfigMaps and Secrets as digests, and namespace settings.
package kube
