// Package configs treats ConfigMaps and Secrets as inputs of a workload: which of
// them it follows, and for each whether its current version was delivered.
//
// The question is never "has the source changed" but "was this version delivered to
// this workload". The delivered version is on record, per workload, and is written after
// the rollout was requested. A change made while the controller was down is found by
// comparison, and an event is only a reason to compare. [Decide] is the whole
// rule for one source:
//
//	(not on record) -- baseline, arrived -------> delivered == current  (settled)
//	       |                                        ↑     |
//	       | changed after the workload started     |     | the content changes
//	       ↓                                        |     ↓
//	      due  <-- no rollout loaded it --  delivered != current
//	       |                                              |
//	       | the loop rolls out                           | another rollout loaded it, or
//	       ↓                                              ↓ ours did before a crash
//	delivered == current                            record only
//
//	settled -- a rollout delivered another version, and the content changed back --> due
//
// Other keys or another algorithm make a new baseline (NewBasis). A replaced immutable source is
// due and barred (ImmutableReplaced), because nodes keep the old copy. A missing source keeps its
// place: the workload isn't restarted onto nothing.
package configs
