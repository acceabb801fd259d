// Package keychain knows which credentials may be tried for a repository, as the kubelet does:
// pull secrets of the pod or of its service account, Docker's configuration file, and other
// sources.
//
// Pods keeps the logins of pull secrets, and nothing else of a Secret, for the time that its maker
// sets and in a bounded amount of memory: a replaced credential is used, and a removed one no longer
// used, after that time. The configuration file is read, and credential helpers are run, for each
// query.
package keychain
