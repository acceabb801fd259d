// Package images treats container images as inputs of a workload: which digest an
// annotation stands for, and whether the pod template has it.
//
// The annotation is the request: a template without a digest, or with another repository
// or tag, is due. A digest that another writer chose stays until the tag has another one,
// unless the workload has its images enforced: then it is due.
// Registries are queried in the background; an assessment uses the last answer.
// [Decide] is the whole rule for one container:
//
//	unresolved -- the registry answers, and the template has ...
//	  +-- the digest ---------------------------> in step --+
//	  +-- a digest that another writer chose ---> pinned  --+ the tag has another digest,
//	  |                                                     | or the template has none
//	  +-- no digest, another repository or tag -> due  <----+
//	                                               | our patch
//	                                               ↓             every pod is available
//	                                       in step, on trial  ---------------------------> in step
//	                                               | the rollout failed
//	                                               ↓              our patch
//	                                        due (put back)  ---------------------------> quarantined
//
// A quarantined digest stays out until the tag has another digest or a user releases it; then
// the image is due. Lockstep restores only a digest that was healthy here, and only when nothing
// else can have caused the failure; otherwise it reports the failure. A due image doesn't roll out
// while it is contested: another writer replaces it again and again. A user who releases a
// reverted digest accepts the template as it is.
package images
