// Package imagewatch knows the current digest of each wanted image, and when to query a registry
// for it again.
//
// A [Resolver] answers the questions of many workloads with as few requests as possible. Equal
// queries with the same credential share a response, and nothing is queried twice within an
// interval, unless a registry reports a push. Package registry sends the requests.
package imagewatch
