// Package images treats container images as inputs of a workload: which digest an
// annotation stands for, and whether the pod template has it.
//
// The annotation is the request: a template without a digest, or with another repository
// or tag, is due. A digest that another writer chose stays until the tag has another one.
// Registries are queried in the background; an assessment uses the last answer.
// [Decide] is the whole rule for one container:
//
//	unresolved --- the registry answers ---> in step
//	                                          |   ^
//	           the tag has another digest, or |   | the rollout is healthy
//	           the template has none          v   |
//	                                          due (changed)
//	                                          |   ^
//	                       the rollout failed |   | the tag has a new digest
//	                                          v   |
//	                        due (put back), and the failed digest is quarantined
//
// A user who releases a reverted digest accepts the template as it is; an image that
// another writer keeps replacing is contested and left alone.
package images
