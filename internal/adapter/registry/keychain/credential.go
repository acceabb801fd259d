package keychain

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Credential is what a registry knows an asker by. The zero value is anonymous.
type Credential struct {
	Username, Password string
	// IdentityToken is exchanged for tokens of the registry (OAuth 2).
	IdentityToken string
	// RegistryToken is sent as it is.
	RegistryToken string
}

// Fingerprint tells credentials apart without showing them: requests are shared by
// what a credential says, whatever the Secret is called that it is in.
type Fingerprint [sha256.Size]byte

// Fingerprint of the credential.
func (c Credential) Fingerprint() Fingerprint {
	if c == (Credential{}) {
		return Fingerprint{}
	}
	h := sha256.New()
	for _, part := range []string{c.Username, c.Password, c.IdentityToken, c.RegistryToken} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return Fingerprint(h.Sum(nil))
}

// Format keeps a credential out of every message, however it is printed.
func (c Credential) Format(s fmt.State, _ rune) {
	text := "a credential"
	if c == (Credential{}) {
		text = "no credential"
	}
	_, _ = s.Write([]byte(text))
}

// MarshalJSON keeps a credential out of structured logs.
func (Credential) MarshalJSON() ([]byte, error) { return []byte(`"a credential"`), nil }

// Source knows credentials.
type Source interface {
	// Credentials lists what may be tried for a repository, in order. An error says what
	// could not be read; what could be read is in the list all the same.
	Credentials(ctx context.Context, repository tagspec.Repository) ([]Credential, error)
}

// Forgetter is a source that keeps credentials which expire.
type Forgetter interface {
	// Forget drops what it keeps for a repository: it was refused.
	Forget(repository tagspec.Repository)
}

// Chain asks several sources and lists what all of them know, without repetitions.
type Chain []Source

// Credentials of all sources, in their order.
func (c Chain) Credentials(ctx context.Context, repository tagspec.Repository) ([]Credential, error) {
	var (
		all  []Credential
		errs []error
		seen = map[Fingerprint]bool{}
	)
	for _, source := range c {
		credentials, err := source.Credentials(ctx, repository)
		errs = append(errs, err)
		for _, credential := range credentials {
			if who := credential.Fingerprint(); !seen[who] {
				seen[who] = true
				all = append(all, credential)
			}
		}
	}
	return all, errors.Join(errs...)
}

// Forget tells all sources that keep something.
func (c Chain) Forget(repository tagspec.Repository) {
	for _, source := range c {
		if f, ok := source.(Forgetter); ok {
			f.Forget(repository)
		}
	}
}
