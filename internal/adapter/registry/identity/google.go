package identity

import (
	"context"
	"strings"
	"time"

	"golang.org/x/oauth2/google"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// googleScope is the scope needed to read an image.
const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// Google provides credentials for Artifact Registry and gcr.io. The zero value is ready.
type Google struct{ leases leases }

// Credentials returns credentials for a Google registry, and none for others.
func (g *Google) Credentials(ctx context.Context, repository tagspec.Repository) ([]keychain.Credential, error) {
	if !isGoogle(repository.Host) {
		return nil, nil
	}
	// One token is valid for all of them.
	credential, err := g.leases.get(ctx, "", fetchGoogle)
	return list(credential, "Google", repository.Host, err)
}

// Forget drops the token if a Google registry refused it.
func (g *Google) Forget(repository tagspec.Repository) {
	if isGoogle(repository.Host) {
		g.leases.forget("")
	}
}

func isGoogle(host string) bool {
	return host == "gcr.io" || strings.HasSuffix(host, ".gcr.io") || strings.HasSuffix(host, ".pkg.dev")
}

func fetchGoogle(ctx context.Context) (keychain.Credential, time.Time, error) {
	found, err := google.FindDefaultCredentials(ctx, googleScope)
	if err != nil {
		return keychain.Credential{}, time.Time{}, err
	}
	token, err := found.TokenSource.Token()
	if err != nil {
		return keychain.Credential{}, time.Time{}, err
	}
	return keychain.Credential{Username: "oauth2accesstoken", Password: token.AccessToken}, token.Expiry, nil
}
