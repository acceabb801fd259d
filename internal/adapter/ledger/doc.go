// Package ledger keeps the record of what was delivered to each workload, in
// ConfigMaps of the cluster: natively by workload in shards, or in the form of
// kubernetes-reloader, by source in one ConfigMap; or it keeps none.
package ledger
