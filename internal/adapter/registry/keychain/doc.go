// Package keychain knows which credentials may be tried for a repository, as the
// kubelet does: pull secrets of the pod or of its service account, Docker's
// configuration file, and whatever else says so.
//
// Nothing is kept: each question reads the Secrets and the file again, so that what a
// person replaced is used at the next check, and what was removed is not used any more.
package keychain
