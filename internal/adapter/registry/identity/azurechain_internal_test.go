package identity

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
)

// azureCloud is a stand-in for Azure's login and for the services of a machine. It notes the logins.
type azureCloud struct {
	// metadata is the answer of the instance metadata service. Without one, the machine isn't in Azure.
	metadata string
	logins   []string
}

const machineToken = `{"access_token":"machine","expires_in":"3600","token_type":"Bearer"}`

func (c *azureCloud) Do(r *http.Request) (*http.Response, error) {
	answer := func(text string) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
	tenant, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	base := "https://login.microsoftonline.com/" + tenant
	switch {
	case r.URL.Host == "169.254.169.254" && r.Header.Get("Metadata") == "":
		c.logins = append(c.logins, "probe")
		if c.metadata == "" {
			return nil, errors.New("no route to host")
		}
		return answer("any")
	case r.URL.Host == "169.254.169.254" && c.metadata == "":
		return nil, errors.New("a token was requested of a machine outside of Azure")
	case r.URL.Host == "169.254.169.254", r.URL.Host == "app.service":
		c.logins = append(c.logins, r.URL.Host+" "+r.URL.Query().Get("client_id"))
		return answer(c.metadata)
	case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
		return answer(`{"tenant_discovery_endpoint":"` + base + `/v2.0/.well-known/openid-configuration",
			"metadata":[{"preferred_network":"login.microsoftonline.com","preferred_cache":"login.microsoftonline.com","aliases":["login.microsoftonline.com"]}]}`)
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		return answer(`{"token_endpoint":"` + base + `/oauth2/v2.0/token","issuer":"` + base + `/v2.0","authorization_endpoint":"` + base + `/authorize"}`)
	case strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token"):
		c.logins = append(c.logins, principal(r))
		return answer(`{"access_token":"principal","expires_in":3600,"token_type":"Bearer"}`)
	}
	return nil, fmt.Errorf("unexpected request %s", r.URL)
}

// principal describes how a service principal logs in.
func principal(r *http.Request) string {
	if err := r.ParseForm(); err != nil {
		return err.Error()
	}
	proof := "secret " + r.PostForm.Get("client_secret")
	if assertion := r.PostForm.Get("client_assertion"); assertion != "" {
		proof = "assertion " + assertion
		if header, err := base64.RawURLEncoding.DecodeString(strings.Split(assertion, ".")[0]); err == nil && strings.Contains(string(header), "x5t") {
			proof = fmt.Sprintf("certificate, chain %t", strings.Contains(string(header), "x5c"))
		}
	}
	return r.PostForm.Get("client_id") + ": " + proof
}

// inAzure makes these variables the only ones that matter for a login. The program az is one that is logged in, or isn't installed.
func inAzure(t *testing.T, az bool, variables map[string]string) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		for _, prefix := range []string{"AZURE_", "IDENTITY_", "MSI_", "IMDS_"} {
			if strings.HasPrefix(name, prefix) {
				t.Setenv(name, value) // restores it
				if err := os.Unsetenv(name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if az {
		write(t, filepath.Join(bin, "az"), "#!/bin/sh\necho '{\"accessToken\":\"cli\",\"expires_on\":4102444800}'\n")
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// certificateFile is a PEM file with a key.
func certificateFile(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "principal.pem")
	write(t, name, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))+
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	return name
}

// azureToken requests a token. The library keeps a machine's tokens for the life of the process, by scope.
func azureToken(t *testing.T, chain azcore.TokenCredential, scope string) (string, error) {
	t.Helper()
	// The library ends az after ten seconds, unless the caller has a deadline of its own.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	token, err := chain.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://" + scope + ".example/.default"}})
	return token.Token, err
}

// TestAzureChain compares every login with that of the library's default chain.
func TestAzureChain(t *testing.T) {
	certificate := certificateFile(t)
	federated := filepath.Join(t.TempDir(), "token")
	write(t, federated, "federated")
	for i, c := range []struct {
		reason    string
		variables map[string]string
		metadata  string
		az        bool
		want      []string
		token     string
	}{
		{
			"a secret is before a certificate, and both are before user, workload and machine",
			map[string]string{
				"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_CLIENT_SECRET": "s3", "AZURE_CLIENT_CERTIFICATE_PATH": certificate,
				"AZURE_USERNAME": "jane", "AZURE_PASSWORD": "p", "AZURE_FEDERATED_TOKEN_FILE": federated,
			},
			machineToken, true,
			[]string{"id: secret s3"},
			"principal",
		},
		{
			"a certificate is before workload and machine",
			map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_CLIENT_CERTIFICATE_PATH": certificate, "AZURE_FEDERATED_TOKEN_FILE": federated},
			machineToken, true,
			[]string{"id: certificate, chain false"},
			"principal",
		},
		{
			"the chain of a certificate is sent on request",
			map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_CLIENT_CERTIFICATE_PATH": certificate, "AZURE_CLIENT_SEND_CERTIFICATE_CHAIN": "True"},
			machineToken, true,
			[]string{"id: certificate, chain true"},
			"principal",
		},
		{
			"a PEM file doesn't have a password, so the next login is tried",
			map[string]string{
				"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_CLIENT_CERTIFICATE_PATH": certificate, "AZURE_CLIENT_CERTIFICATE_PASSWORD": "p",
				"AZURE_FEDERATED_TOKEN_FILE": federated,
			},
			machineToken, true,
			[]string{"id: assertion federated"},
			"principal",
		},
		{
			"a workload is before the machine",
			map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_FEDERATED_TOKEN_FILE": federated},
			machineToken, true,
			[]string{"id: assertion federated"},
			"principal",
		},
		{"the machine's identity is before az", nil, machineToken, true, []string{"probe", "169.254.169.254 "}, "machine"},
		{
			"the variable selects one of the machine's identities",
			map[string]string{"AZURE_CLIENT_ID": "id"},
			machineToken, true,
			[]string{"probe", "169.254.169.254 id"},
			"machine",
		},
		{
			"another endpoint for the machine's identity isn't probed",
			map[string]string{"IDENTITY_ENDPOINT": "http://app.service/token", "IDENTITY_HEADER": "h"},
			machineToken, true,
			[]string{"app.service "},
			"machine",
		},
		{"outside of Azure, az is used", nil, "", true, []string{"probe"}, "cli"},
		{"another program in place of the metadata service doesn't prevent az", nil, "<html>", true, []string{"probe", "169.254.169.254 "}, "cli"},
		{"outside of Azure, without az", nil, "", false, []string{"probe"}, ""},
		{"dev is az", map[string]string{"AZURE_TOKEN_CREDENTIALS": "dev"}, machineToken, true, nil, "cli"},
		{"prod isn't az", map[string]string{"AZURE_TOKEN_CREDENTIALS": "prod"}, "", true, []string{"probe"}, ""},
		{
			"a login alone isn't probed",
			map[string]string{"AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential"},
			machineToken, true,
			[]string{"169.254.169.254 "},
			"machine",
		},
		{
			"one name selects one login",
			map[string]string{
				"AZURE_TOKEN_CREDENTIALS": "workloadidentitycredential", "AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_CLIENT_SECRET": "s3",
				"AZURE_FEDERATED_TOKEN_FILE": federated,
			},
			machineToken, true,
			[]string{"id: assertion federated"},
			"principal",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			inAzure(t, c.az, c.variables)
			for name, open := range map[string]func(azcore.ClientOptions) (azcore.TokenCredential, error){
				"ours": azureChain,
				"library": func(o azcore.ClientOptions) (azcore.TokenCredential, error) {
					return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: o})
				},
			} {
				cloud := azureCloud{metadata: c.metadata}
				chain, err := open(azcore.ClientOptions{Transport: &cloud})
				if err != nil {
					t.Fatal(err)
				}
				token, err := azureToken(t, chain, fmt.Sprint(name, i))
				if token != c.token || (err == nil) != (c.token != "") {
					t.Errorf("%s: token %q, error %v, want token %q", name, token, err, c.token)
				}
				if diff := cmp.Diff(c.want, cloud.logins); diff != "" {
					t.Errorf("%s: logins (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// TestAzureTenants: tokens of further tenants are for those who allow it.
func TestAzureTenants(t *testing.T) {
	for allowed, want := range map[string]bool{"": false, "first;second": true, "*": true, "first": false} {
		inAzure(t, false, map[string]string{
			"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_CLIENT_SECRET": "s3", "AZURE_ADDITIONALLY_ALLOWED_TENANTS": allowed,
		})
		chain, err := azureChain(azcore.ClientOptions{Transport: &azureCloud{}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = chain.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{azureScope}, TenantID: "second"})
		if (err == nil) != want {
			t.Errorf("allowed are %q: error is %v", allowed, err)
		}
	}
}

// TestAzureReasons: the error lists every login with the reason why it wasn't used.
func TestAzureReasons(t *testing.T) {
	for _, c := range []struct {
		reason    string
		variables map[string]string
		want      []string
	}{
		{"nothing is set", nil, []string{
			"EnvironmentCredential: AZURE_TENANT_ID isn't set", "WorkloadIdentityCredential: no client ID",
			"ManagedIdentityCredential: the instance metadata service doesn't answer: no route to host", "AzureCLICredential: ",
		}},
		{"no client", map[string]string{"AZURE_TENANT_ID": "tenant"}, []string{"EnvironmentCredential: AZURE_CLIENT_ID isn't set"}},
		{"no proof", map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id"}, []string{
			"EnvironmentCredential: neither AZURE_CLIENT_SECRET nor AZURE_CLIENT_CERTIFICATE_PATH is set", "WorkloadIdentityCredential: no token file",
		}},
		{"no file", map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_CLIENT_CERTIFICATE_PATH": "/none/p.pem"}, []string{
			"EnvironmentCredential: open /none/p.pem: ",
		}},
		{"no certificate", map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_CLIENT_CERTIFICATE_PATH": "/dev/null"}, []string{
			"EnvironmentCredential: parse /dev/null: ",
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			inAzure(t, false, c.variables)
			chain, err := azureChain(azcore.ClientOptions{Transport: &azureCloud{}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = azureToken(t, chain, "reasons")
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error doesn't contain %q: %v", want, err)
				}
			}
		})
	}
}

// TestAzureLoginsLeftOut: users of a login that Lockstep doesn't support learn about it and its replacement, even though the message is cut.
func TestAzureLoginsLeftOut(t *testing.T) {
	const user = "AZURE_USERNAME and AZURE_PASSWORD aren't supported: use AZURE_CLIENT_SECRET, AZURE_CLIENT_CERTIFICATE_PATH or workload identity"
	for _, c := range []struct {
		variables map[string]string
		want      string
	}{
		{map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "id", "AZURE_USERNAME": "jane", "AZURE_PASSWORD": "hunter2"}, user},
		{map[string]string{"AZURE_USERNAME": "jane"}, user},
		{map[string]string{"AZURE_PASSWORD": "hunter2"}, user},
		{map[string]string{"AZURE_TOKEN_CREDENTIALS": "AzurePowerShellCredential"}, `AZURE_TOKEN_CREDENTIALS="AzurePowerShellCredential" isn't supported: use dev, prod, `},
		{map[string]string{"AZURE_TOKEN_CREDENTIALS": "AzureDeveloperCLICredential"}, "ManagedIdentityCredential or AzureCLICredential"},
		{map[string]string{"AZURE_TOKEN_CREDENTIALS": ""}, `AZURE_TOKEN_CREDENTIALS="" isn't supported`},
	} {
		inAzure(t, false, c.variables)
		chain, err := azureChain(azcore.ClientOptions{Transport: &azureCloud{}})
		if err == nil {
			_, err = azureToken(t, chain, "left-out")
		}
		_, err = list(keychain.Credential{}, "Azure", "team.azurecr.io", err)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: error is %v, want %q", c.variables, err, c.want)
		}
		for name := range c.variables {
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// silence is a network that drops packets.
type silence struct{}

func (silence) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestAzureProbeEnds: a machine outside of Azure whose network drops packets waits for a second, not for the library's retries.
func TestAzureProbeEnds(t *testing.T) {
	inAzure(t, false, map[string]string{"AZURE_TOKEN_CREDENTIALS": "prod"})
	synctest.Test(t, func(t *testing.T) {
		chain, err := azureChain(azcore.ClientOptions{Transport: silence{}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = azureToken(t, chain, "silence")
		if err == nil || !strings.Contains(err.Error(), "the instance metadata service doesn't answer: context deadline exceeded") {
			t.Errorf("error is %v", err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited for %s", waited)
		}
	})
}

// TestAzureUsesTheChain: without an identity of its own, Azure logs in with the chain.
func TestAzureUsesTheChain(t *testing.T) {
	inAzure(t, false, map[string]string{"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential"})
	_, _, err := (&Azure{}).exchange(t.Context(), "team.azurecr.io")
	if err == nil || !strings.Contains(err.Error(), "EnvironmentCredential: AZURE_TENANT_ID isn't set") {
		t.Errorf("error is %v", err)
	}
}
