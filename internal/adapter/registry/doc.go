// Package registry knows container registries: it sends the requests for tags, digests and
// platforms, with the credentials and tokens that they need.
//
// Tokens are shared by all repositories of a registry. Each registry has its own connections,
// limits and pauses, so a slow one delays only its own responses. The caller decides when to
// query: see package imagewatch.
//
// go-containerregistry provides the types of manifests and platforms. Its transport is not used:
// see docs/decisions/0080-requests-to-registries.md.
package registry
