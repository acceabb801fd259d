// Package bundle makes the files of a release: archives of the programs, the images, the
// charts, the release notes and the checksums of all of them. It needs git, the go command
// and Helm. The same commit results in the same bytes.
package bundle
