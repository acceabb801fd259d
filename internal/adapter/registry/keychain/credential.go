package keychain

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Credential authenticates a client at a registry. The zero value is anonymous.
type Credential struct {
	Username, Password string
	// IdentityToken is exchanged for registry tokens (OAuth 2).
	IdentityToken string
	// RegistryToken is sent unchanged.
	RegistryToken string
}

// Fingerprint distinguishes credentials without showing them: equal credentials share requests,
// whatever their Secret is called.
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

// maxValue limits each part of a credential: servers refuse longer headers, or close the connection.
const maxValue = 8 << 10

// check refuses a credential that can't be sent. A password may contain line breaks: it is sent in
// base64, and may be a JSON key.
func (c Credential) check() error {
	switch {
	case max(len(c.Username), len(c.Password), len(c.IdentityToken), len(c.RegistryToken)) > maxValue:
		return fmt.Errorf("can't be used: the user name, the password or a token is longer than %d bytes", maxValue)
	case strings.ContainsFunc(c.Username+c.RegistryToken, unicode.IsControl):
		return errors.New("can't be used: the user name or the registry token contains control characters")
	}
	return nil
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

// Source provides credentials.
type Source interface {
	// Credentials lists the credentials to try for a repository, in order. An error reports what
	// could not be read; the list still contains the rest.
	Credentials(ctx context.Context, repository tagspec.Repository) ([]Credential, error)
}

// Forgetter is a source that keeps expiring credentials.
type Forgetter interface {
	// Forget drops the credentials of a repository that refused them.
	Forget(repository tagspec.Repository)
}

// Chain queries several sources and lists the credentials of all, without duplicates.
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

// Forget calls every source that keeps credentials.
func (c Chain) Forget(repository tagspec.Repository) {
	for _, source := range c {
		if f, ok := source.(Forgetter); ok {
			f.Forget(repository)
		}
	}
}
