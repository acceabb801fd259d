// Package configs is ConfigMaps and Secrets as inputs of a workload: which of
// them it follows, and for each whether it was given what exists now.
//
// The question is never "has the source changed" but "was this workload given
// this version". What was given is on record, per workload, and is written after
// the rollout was asked for; a change made while the controller was down is found by
// comparison, and an event is only a reason to compare. [Decide] is the whole
// rule for one source.
package configs
