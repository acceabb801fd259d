// Package cluster knows what exists in a cluster: a [Cache] of workloads, sources and
// namespaces with the index from sources to the workloads that use them, the feed of
// workloads that have to be looked at, and the same answers read live for a command
// that runs once.
package cluster
