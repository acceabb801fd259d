// Package lineage knows the revisions of a workload, the sources that each of them uses, and
// which one new pods are made from.
package lineage
