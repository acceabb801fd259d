package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	azureScope = "https://containerregistry.azure.net/.default"
	// azureLife is the assumed lifetime of an ACR token without an expiry; they live for three
	// hours.
	azureLife = time.Hour
	maxAnswer = 64 << 10
)

// Azure provides credentials for ACR. The zero value is ready.
type Azure struct {
	// Identity is this program's identity; nil uses azureChain.
	Identity azcore.TokenCredential
	// Transport connects to the registry; nil is the default one.
	Transport http.RoundTripper

	leases leases
}

// Credentials returns credentials for an Azure registry, and none for others.
func (a *Azure) Credentials(ctx context.Context, repository tagspec.Repository) ([]keychain.Credential, error) {
	if !isAzure(repository.Host) {
		return nil, nil
	}
	credential, err := a.leases.get(ctx, repository.Host, func(ctx context.Context) (keychain.Credential, time.Time, error) {
		return a.exchange(ctx, repository.Host)
	})
	return list(credential, "Azure", repository.Host, err)
}

// Forget drops the token of a registry that refused it.
func (a *Azure) Forget(repository tagspec.Repository) {
	if isAzure(repository.Host) {
		a.leases.forget(repository.Host)
	}
}

// isAzure matches the whole host: the identity's token is sent there.
func isAzure(host string) bool {
	for _, suffix := range []string{".azurecr.io", ".azurecr.cn", ".azurecr.us"} {
		if name, ok := strings.CutSuffix(host, suffix); ok && name != "" && !strings.ContainsAny(name, ":/@") {
			return true
		}
	}
	return false
}

// exchange exchanges the identity's token for a registry token, which in turn gets repository
// tokens.
func (a *Azure) exchange(ctx context.Context, host string) (keychain.Credential, time.Time, error) {
	who := a.Identity
	if who == nil {
		found, err := azureChain(azcore.ClientOptions{})
		if err != nil {
			return keychain.Credential{}, time.Time{}, err
		}
		who = found
	}
	token, err := who.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{azureScope}})
	if err != nil {
		return keychain.Credential{}, time.Time{}, err
	}
	form := url.Values{"grant_type": {"access_token"}, "service": {host}, "access_token": {token.Token}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+host+"/oauth2/exchange", strings.NewReader(form.Encode()))
	if err != nil {
		return keychain.Credential{}, time.Time{}, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return a.send(request)
}

func (a *Azure) send(request *http.Request) (keychain.Credential, time.Time, error) {
	// A redirect would send the token elsewhere.
	client := &http.Client{Transport: a.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return keychain.Credential{}, time.Time{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return keychain.Credential{}, time.Time{}, fmt.Errorf("exchange the token: %s", response.Status)
	}
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	if json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer) != nil || answer.RefreshToken == "" {
		return keychain.Credential{}, time.Time{}, errors.New("exchange the token: the answer does not contain one")
	}
	return keychain.Credential{IdentityToken: answer.RefreshToken}, expiry(answer.RefreshToken), nil
}

// expiry reads when a token expires. It doesn't verify the token: the registry does.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if len(parts) == 3 {
		text, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && json.Unmarshal(text, &claims) == nil && claims.Expires > 0 {
			return time.Unix(claims.Expires, 0)
		}
	}
	return time.Now().Add(azureLife)
}
