// Package images makes the container images of a release: it compiles the programs for every
// platform, puts each into an image, writes all of them into one OCI layout, and pushes a
// layout to a registry. It needs the go command but no container engine, and the same source
// results in the same digests.
package images
