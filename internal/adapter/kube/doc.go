// Package kube knows the workloads and sources of a cluster: workloads of every
// kind behind one type, ConfigMaps and Secrets as digests, and how a workload is
// patched and written about. A [Cache] is the set of mirrors that the controller
// needs, with the index from sources to the workloads that use them.
package kube
