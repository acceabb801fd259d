// Package monitoring knows the metrics that several parts share: those of the cache and of
// the record, and how counts of deleted namespaces are dropped.
package monitoring
