// Package registry knows container registries: which digest a tag has, which tags
// there are, and when a registry may be asked again.
//
// A [Resolver] answers questions of many askers with as few requests as can be. An
// answer is shared by all who ask the same with the same credential, tokens are shared
// by all repositories of a registry, and nothing is asked twice within an interval.
// Each registry has its own connections, limits and pauses, so that a slow one delays
// only its own answers.
//
// go-containerregistry has the types of manifests and platforms. Its transport is not
// used: see docs/decisions/0080-requests-to-registries.md.
package registry
