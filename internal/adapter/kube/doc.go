// Package kube knows what Lockstep keeps of Kubernetes objects: workloads of every kind
// behind one type, ConfigMaps and Secrets as digests, and the settings of namespaces.
package kube
