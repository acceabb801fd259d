package keychain

import (
	"context"
	"errors"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Withheld is in the place of credentials that may not be used here. It provides none, and says why
// in case the registry requires some.
type Withheld struct {
	Why string
	// For reports whether the credentials might serve a repository; nil means that they might.
	For func(tagspec.Repository) bool
}

// Credentials implements [Source].
func (w Withheld) Credentials(_ context.Context, repository tagspec.Repository) ([]Credential, error) {
	if w.For != nil && !w.For(repository) {
		return nil, nil
	}
	return nil, errors.New(w.Why)
}
