// Package lint knows what is wrong with manifests before they are applied: what people wrote
// for Lockstep on each object, and references to objects that the manifests do not have.
package lint
