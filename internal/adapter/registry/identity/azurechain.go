package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// azureLogin is one way to log in to Azure. AZURE_TOKEN_CREDENTIALS selects it by its name or group.
type azureLogin struct {
	group, name string
	open        func(azureOptions) (azcore.TokenCredential, error)
}

type azureOptions struct {
	client  azcore.ClientOptions
	tenants []string
	// alone is true if the chain doesn't contain another login.
	alone bool
}

// azureChain is azidentity.DefaultAzureCredential without user and password, azd and PowerShell, which would add 0.3 MB to the program.
// A login that isn't configured is in the chain too, so the chain's error lists the reason.
func azureChain(client azcore.ClientOptions) (azcore.TokenCredential, error) {
	logins := []azureLogin{
		{"prod", "EnvironmentCredential", environmentLogin},
		{"prod", "WorkloadIdentityCredential", func(o azureOptions) (azcore.TokenCredential, error) {
			return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: o.client, AdditionallyAllowedTenants: o.tenants})
		}},
		{"prod", "ManagedIdentityCredential", managedLogin},
		{"dev", "AzureCLICredential", func(o azureOptions) (azcore.TokenCredential, error) {
			return azidentity.NewAzureCLICredential(&azidentity.AzureCLICredentialOptions{AdditionallyAllowedTenants: o.tenants})
		}},
	}
	if selected, ok := os.LookupEnv("AZURE_TOKEN_CREDENTIALS"); ok {
		logins = slices.DeleteFunc(logins, func(l azureLogin) bool { return l.group != selected && !strings.EqualFold(l.name, selected) })
		if len(logins) == 0 {
			return nil, fmt.Errorf("AZURE_TOKEN_CREDENTIALS=%q isn't supported: use dev, prod, EnvironmentCredential, "+
				"WorkloadIdentityCredential, ManagedIdentityCredential or AzureCLICredential", selected)
		}
	}
	options := azureOptions{client: client, alone: len(logins) == 1}
	if tenants := os.Getenv("AZURE_ADDITIONALLY_ALLOWED_TENANTS"); tenants != "" {
		options.tenants = strings.Split(tenants, ";")
	}
	sources := make([]azcore.TokenCredential, len(logins))
	for i, login := range logins {
		source, err := login.open(options)
		if err != nil {
			source = unavailable(login.name + ": " + err.Error())
		}
		sources[i] = source
	}
	return azidentity.NewChainedTokenCredential(sources, nil)
}

// unavailable is a login that can't be used, for this reason.
type unavailable string

func (u unavailable) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, azidentity.NewCredentialUnavailableError(string(u))
}

// environmentLogin logs in a service principal with its secret or else its certificate.
func environmentLogin(o azureOptions) (azcore.TokenCredential, error) {
	tenant, id := os.Getenv("AZURE_TENANT_ID"), os.Getenv("AZURE_CLIENT_ID")
	secret, file := os.Getenv("AZURE_CLIENT_SECRET"), os.Getenv("AZURE_CLIENT_CERTIFICATE_PATH")
	switch {
	case secret == "" && file == "" && os.Getenv("AZURE_USERNAME")+os.Getenv("AZURE_PASSWORD") != "":
		return nil, errors.New("AZURE_USERNAME and AZURE_PASSWORD aren't supported: use AZURE_CLIENT_SECRET, AZURE_CLIENT_CERTIFICATE_PATH or workload identity")
	case tenant == "":
		return nil, errors.New("AZURE_TENANT_ID isn't set")
	case id == "":
		return nil, errors.New("AZURE_CLIENT_ID isn't set")
	case secret != "":
		return azidentity.NewClientSecretCredential(tenant, id, secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: o.client, AdditionallyAllowedTenants: o.tenants})
	case file == "":
		return nil, errors.New("neither AZURE_CLIENT_SECRET nor AZURE_CLIENT_CERTIFICATE_PATH is set")
	}
	content, err := os.ReadFile(file) //nolint:gosec // whoever starts the program names its certificate
	if err != nil {
		return nil, err
	}
	certificates, key, err := azidentity.ParseCertificates(content, []byte(os.Getenv("AZURE_CLIENT_CERTIFICATE_PASSWORD")))
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	send := os.Getenv("AZURE_CLIENT_SEND_CERTIFICATE_CHAIN")
	return azidentity.NewClientCertificateCredential(tenant, id, certificates, key, &azidentity.ClientCertificateCredentialOptions{
		ClientOptions: o.client, AdditionallyAllowedTenants: o.tenants, SendCertificateChain: send == "1" || strings.EqualFold(send, "true"),
	})
}
