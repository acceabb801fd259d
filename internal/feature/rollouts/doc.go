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
//	ignore (nothing asks for it)
//	  ↑
//	  ↓
//	leave  <---------------------------------------------------+
//	  |  a source or tag changed                               |
//	  ↓                                                        |
//	wait  -- another rollout or the next job: remember --------+
//	  |  ↑                                                     |
//	  |  +-- released, resumed, changed again --  hold         |
//	  ↓                                             ↑          |
//	held, paused, reverted, switched off?  -- yes --+          |
//	  |  no                                                    |
//	  ↓                                                        |
//	observe, or roll out / evict / refresh  -------------------+
//
//	leave    in step; or there is nothing to do before a user or registry acts: a mistake, a
//	         missing source, an input that another writer reverted, an image without an answer
//	         or whose rollout failed
//	wait     the quiet window; or the workload's controller hasn't acted on another writer's
//	         change; or the template contains the change and a user has yet to replace older pods
//
// The record is written after the patch. After a crash in between, the next start finds
// the delivery in the newest revisions.
package rollouts
