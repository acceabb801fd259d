package imagewatch

import "github.com/lockstep-dev/lockstep/internal/core/tagspec"

// Forget makes the next question about a repository one to the registry.
func (r *Resolver) Forget(repository tagspec.Repository) { r.forget(repository) }
