// Package imagewatch knows which digest each wanted image has now, and when a registry is
// asked for it again.
//
// A [Resolver] answers the questions of many workloads with as few requests as possible. An
// answer is shared by all who ask the same with the same credential, and nothing is asked
// twice within an interval, unless a registry reports a push. Package registry sends the
// requests.
package imagewatch
