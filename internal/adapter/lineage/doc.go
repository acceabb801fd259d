// Package lineage knows which revisions a workload has, what each of them uses,
// and which objects they own.
package lineage
