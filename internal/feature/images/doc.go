// Package images is the images of containers as inputs of a workload: which digest an
// annotation stands for, and whether the pod template has it.
//
// The annotation is the request: a template without a digest, or with another repository
// or tag, is due. A digest that another writer chose stays until the tag has another one.
// [Decide] is the whole rule for one container. Registries are asked in the background;
// an assessment looks at the last answer.
package images
