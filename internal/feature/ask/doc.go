// Package ask knows the answers to what people ask about their workloads: what happened,
// what is, and what would be. It reads and never writes. What the controller would decide
// is asked of the controller's own decision, so that an answer cannot contradict it.
package ask
