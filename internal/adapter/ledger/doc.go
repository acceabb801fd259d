// Package ledger keeps the record of the versions delivered to each workload, in ConfigMaps of
// the cluster: natively by workload in shards, or in the form of kubernetes-reloader, by source
// in one ConfigMap. It can also keep no record at all.
package ledger
