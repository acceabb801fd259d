// Package revisions lets every revision of a workload keep the configuration it was
// started with, for ConfigMaps and Secrets whose names carry their content.
//
// Each revision (ReplicaSet, ControllerRevision, CronJob, running Job) that names such an
// object becomes one of its owners. The Kubernetes garbage collector then removes the
// object with the last revision that needs it. Owners are added and never removed, nothing
// but ownership is written, and nothing is deleted.
//
// There are two ways to run it, and both answer the same question for each object: which
// living revisions name it?
//
//   - [Attacher] does it once for the named objects of one workload, as a Job
//     after a deploy. It waits, with a bound, until the workload's controller has
//     made the revision that names them: [Judge] reports what is missing.
//   - [Reconciler] does it all the time for every object that carries the label
//     lockstep.dev/revisioned: "true". [Decide] is its decision.
//
// The states of one object, as [Decide] sees them:
//
//	no users, no owners --- the grace period is over ---> unreferenced (reported)
//	        |                                                  |
//	        | a revision names it                              | a revision names it
//	        ↓                                                  ↓
//	attach: every user becomes an owner  <---------------------+
//	        |
//	        ↓
//	owned by every user --- no revision names it anymore ---> owned without use
//	                                                            | the last owner is deleted
//	                                                            ↓
//	                                            the garbage collector deletes it
//
// Where a kind of revision can't be read, nothing changes until it can.
package revisions
