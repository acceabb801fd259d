package identity

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/AzureAD/microsoft-authentication-library-for-go/apps/managedidentity"
)

// managedLogin logs in with the machine's identity.
func managedLogin(o azureOptions) (azcore.TokenCredential, error) {
	options := azidentity.ManagedIdentityCredentialOptions{ClientOptions: o.client}
	if id, ok := os.LookupEnv("AZURE_CLIENT_ID"); ok {
		options.ID = azidentity.ClientID(id)
	}
	identity, err := azidentity.NewManagedIdentityCredential(&options)
	if err != nil {
		return nil, err
	}
	if source, _ := managedidentity.GetSource(); o.alone || source != managedidentity.DefaultToIMDS {
		return identity, nil
	}
	// If something other than Azure answers in place of the service, the library lets the next login try. It does so only for an identity that is
	// itself an element of a chain, so the probe wraps a chain.
	chain, err := azidentity.NewChainedTokenCredential([]azcore.TokenCredential{identity}, nil)
	return probedIdentity{chain, o.client.Transport}, err
}

// probedIdentity checks whether the instance metadata service answers before it requests a token. Outside of Azure, the library retries that
// request until fetchTimeout is over, and the next login isn't tried. The library's own probe works only in its default chain.
type probedIdentity struct {
	azcore.TokenCredential
	transport policy.Transporter
}

func (p probedIdentity) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if err := p.probe(ctx); err != nil {
		return azcore.AccessToken{}, azidentity.NewCredentialUnavailableError("ManagedIdentityCredential: the instance metadata service doesn't answer: " + err.Error())
	}
	return p.TokenCredential.GetToken(ctx, options)
}

// probe leaves out the header Metadata, so the service refuses the request at once. Any response shows that a service is there.
func (p probedIdentity) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://169.254.169.254/metadata/identity/oauth2/token", http.NoBody)
	if err != nil {
		return err
	}
	transport := p.transport
	if transport == nil {
		transport = http.DefaultClient
	}
	response, err := transport.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return nil
}
