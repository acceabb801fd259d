package identity

import (
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// All are the identities of all clouds.
func All() keychain.Chain { return keychain.Chain{&ECR{}, &Google{}, &Azure{}} }

// Serve reports whether one of the clouds has the repository.
func Serve(repository tagspec.Repository) bool {
	_, aws := ecrRegion(repository.Host)
	return aws || isGoogle(repository.Host) || isAzure(repository.Host)
}
