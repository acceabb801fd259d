// Package kube knows the Kubernetes API: workloads of every kind behind one
// type, slim copies of what has to be watched, patches, events and the record
// that Lockstep keeps in the cluster.
//
// A [Mirror] keeps the objects of one resource in step with the API server. It
// stores what is made of an object on arrival, so a ConfigMap of a megabyte
// costs its keys and their digests, and no Secret's value outlives the decoding
// of its event. A [Cache] is the set of mirrors that the controller needs, with
// the index from sources to the workloads that use them.
package kube
