// Package lint finds mistakes in manifests before they are applied: in Lockstep's
// annotations and labels on each object, and in references to objects that the manifests
// don't contain.
package lint
