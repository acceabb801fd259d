// Package rollouts is the loop: it keeps each workload in step with its inputs.
//
// A key arrives for whatever reason. The loop gathers what is known about that workload,
// decides in a pure function, acts with at most one write to the workload, and reports.
// Nothing depends on having seen an event: the same key arriving twice, late, or after a
// restart leads to the same decision.
//
//	gather   workload, settings, record, and a finding for each input
//	judge    which inputs another writer reverted: pure, the last step of [Gatherer.Gather]
//	decide   [Decide]: leave, remember, wait, hold or roll out
//	act      one patch with the resource version that was decided on, then the record
//	report   one log line, one event, one count
//
// The states of a workload, with the verb that the loop uses in each:
//
//	             nothing asks for it
//	ignore  <------------------------->  leave (in step)  <-----------+
//	                                        |                         |
//	               a source or tag changed  |   remember: another     |
//	                                        |   rollout delivered it  |
//	                                        v                         |
//	     +-------------------------->  wait (quiet window) -----------+
//	     | released, resumed,               |                         |
//	     | changed again                    | quiet                   |
//	     |                                  v                         |
//	   hold  <----------------  held, paused, reverted?               |
//	                                        | no                      |
//	                                        v                         |
//	               observe, or roll out / evict / refresh  -----------+
//
// The record is written after the patch. After a crash in between, the next start finds
// the delivery in the newest revisions.
package rollouts
