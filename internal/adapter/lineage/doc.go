// Package lineage knows which revisions a workload has, what each of them uses, and which
// one new pods are made from.
package lineage
