// Package podsync keeps the files of one pod in step with ConfigMaps, Secrets
// or a mounted directory, and the application in step with the files.
//
// One generation (a content hash) at a time goes through
//
//	observe → stage → check → publish → notify → confirm → in step
//	            |       |        |        ↑ |        |
//	            +-------+--------+        | | failed | failed
//	                    | refused,        | ↓        ↓
//	                    ↓ or failed      wait longer each time
//	                 rejected               | MaxFailures, if RollBack is on
//	     the same step again later;         ↓
//	     from the start if the sources   roll back to the previous set; the failed
//	     change                          one is barred until the sources change
//
// and only the newest matters. [Decide], a function of values, chooses the next
// step; everything else gathers, acts and reports. Without a roll-back the agent notifies again
// without a limit, and its health is bad from MaxFailures on. While the application is still
// working on an answer, the agent only queries it again.
//
// Invariants:
//   - a generation that its checker refused is never published, and the
//     application is not notified of it;
//   - a generation counts as confirmed only when the application said so;
//   - the agent records a delivery after it was made, so an agent that is
//     killed at any point resumes there;
//   - contents never reach a log, an error, a metric or the status file.
package podsync
