// Package keychain knows which credentials may be tried for a repository, as the kubelet does:
// pull secrets of the pod or of its service account, Docker's configuration file, and other
// sources.
//
// Nothing is kept: each query reads the Secrets and the file again, so a replaced credential is
// used at the next check, and a removed one is no longer used.
package keychain
