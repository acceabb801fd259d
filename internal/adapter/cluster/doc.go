// Package cluster knows the state of a cluster: a [Cache] of workloads, sources and namespaces
// with the index from sources to the workloads that use them, the feed of workloads that need a
// decision, and the same data read live for one-shot commands.
package cluster
