// Package registry knows container registries: it sends the requests for tags, digests and
// platforms, with the credentials and tokens that they need.
//
// Tokens are shared by all repositories of a registry. Each registry has its own
// connections, limits and pauses, so a slow one delays only its own answers. When to ask
// is left to the caller: see package imagewatch.
//
// go-containerregistry has the types of manifests and platforms. Its transport is not
// used: see docs/decisions/0080-requests-to-registries.md.
package registry
