package identity_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/identity"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

func of(host string) tagspec.Repository { return tagspec.Repository{Host: host, Path: "app"} }

// standIn is a local server in the place of a cloud's token service.
func standIn(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s
}

// TestECR: the library of AWS signs a request with keys of the environment; the token
// service is a stand-in.
func TestECR(t *testing.T) {
	life, asked := 12*time.Hour, 0
	s := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if got := r.Header.Get("X-Amz-Target"); got != "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken" {
			t.Errorf("asked for %q", got)
		}
		if got := r.Header.Get("Authorization"); !strings.Contains(got, "Credential=AKIDEXAMPLE/") || !strings.Contains(got, "/eu-west-1/ecr/") {
			t.Errorf("signed as %q", got)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		fmt.Fprintf(w, `{"authorizationData":[{"authorizationToken":%q,"expiresAt":%d}]}`,
			base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "AWS:password-%d", asked)), time.Now().Add(life).Unix())
	})
	awsEnvironment(t, s.URL)
	var source identity.ECR
	get := func(host, want string) {
		t.Helper()
		got, err := source.Credentials(t.Context(), of(host))
		if err != nil || !cmp.Equal(got, []keychain.Credential{{Username: "AWS", Password: want}}) {
			t.Errorf("%d credentials, error %v, want %s", len(got), err, want)
		}
	}
	const host = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
	get(host, "password-1")
	get(host, "password-1")
	life = -time.Second // Tokens that have ended are replaced at each question.
	get("210987654321.dkr.ecr.eu-west-1.amazonaws.com", "password-2")
	get("210987654321.dkr.ecr.eu-west-1.amazonaws.com", "password-3")
	get(host, "password-1")
}

func awsEnvironment(t *testing.T, url string) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_ECR": url, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hunter2",
		"AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
}

// TestECRHosts: the credentials are for registries of AWS and for nothing that looks
// like one.
func TestECRHosts(t *testing.T) {
	s := standIn(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	awsEnvironment(t, s.URL)
	for host, want := range map[string]bool{
		"123456789012.dkr.ecr.eu-west-1.amazonaws.com":          true,
		"123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com": true,
		"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn":      true,
		"123456789012.dkr.ecr.us-iso-east-1.c2s.ic.gov":         true,
		"123456789012.dkr-ecr.eu-west-1.on.aws":                 true,
		"evil.example":                                          false,
		"123456789012.dkr.ecr.eu-west-1.amazonaws.com.evil.com": false,
		"evil.com.123456789012.dkr.ecr.eu-west-1.amazonaws.com": false,
		"123456789012xdkr.ecr.eu-west-1.amazonaws.com":          false,
		"123456789012.dkr.ecr.eu-west-1.amazonaws.com:5000":     false,
		"123456789012.dkr.ecr.eu-west-1xamazonaws.com":          false,
		"public.ecr.aws": false,
	} {
		var source identity.ECR
		_, err := source.Credentials(t.Context(), of(host))
		if (err != nil) != want {
			t.Errorf("%s is taken for a registry of AWS: %t (%v)", host, err != nil, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "identity of AWS for "+host)) {
			t.Errorf("error is %v", err)
		}
	}
}

// TestGoogle: the metadata server is a stand-in.
func TestGoogle(t *testing.T) {
	asked, life := 0, 3600
	s := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		if !strings.HasSuffix(r.URL.Path, "/token") {
			return
		}
		asked++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":%d,"token_type":"Bearer"}`, asked, life)
	})
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(s.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir())
	var source identity.Google
	for _, host := range []string{"gcr.io", "eu.gcr.io", "europe-docker.pkg.dev"} {
		got, err := source.Credentials(t.Context(), of(host))
		if err != nil || !cmp.Equal(got, []keychain.Credential{{Username: "oauth2accesstoken", Password: "token-1"}}) {
			t.Errorf("%s: %d credentials, error %v", host, len(got), err)
		}
	}
	for _, host := range []string{"evilgcr.io", "gcr.io.evil.com", "pkg.dev", "docker.io", "gcr.io:5000"} {
		if got, err := source.Credentials(t.Context(), of(host)); len(got) != 0 || err != nil {
			t.Errorf("%s got %d credentials, error %v", host, len(got), err)
		}
	}
}

// person is an identity of Azure with a fixed token.
type person struct{ err error }

func (p person) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if len(o.Scopes) != 1 || o.Scopes[0] != "https://containerregistry.azure.net/.default" {
		return azcore.AccessToken{}, fmt.Errorf("asked for %q", o.Scopes)
	}
	return azcore.AccessToken{Token: "aad-token", ExpiresOn: time.Now().Add(time.Hour)}, p.err
}

// to sends every request to one server, whatever host it is for.
type to struct{ address string }

func (s to) RoundTrip(r *http.Request) (*http.Response, error) {
	c := r.Clone(r.Context())
	c.URL.Scheme, c.URL.Host = "http", s.address
	return http.DefaultTransport.RoundTrip(c)
}

// TestAzure: the exchange of the registry is a stand-in, and so is the identity.
func TestAzure(t *testing.T) {
	t.Parallel()
	asked := 0
	status, expires := http.StatusOK, time.Now().Add(3*time.Hour).Unix()
	s := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/oauth2/exchange" || r.PostFormValue("grant_type") != "access_token" || r.PostFormValue("access_token") != "aad-token" || r.PostFormValue("service") != r.Host {
			t.Errorf("asked %s for %v", r.URL.Path, r.PostForm)
		}
		w.Header().Set("Location", "http://evil.example/")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"refresh_token":"x.%s.%d"}`, base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expires)), asked)
	})
	source := identity.Azure{Identity: person{}, Transport: to{strings.TrimPrefix(s.URL, "http://")}}
	get := func(host string) string {
		t.Helper()
		got, err := source.Credentials(t.Context(), of(host))
		if err != nil || len(got) != 1 {
			t.Fatalf("%d credentials, error %v", len(got), err)
		}
		return got[0].IdentityToken
	}
	first := get("team.azurecr.io")
	if first == "" || get("team.azurecr.io") != first || asked != 1 {
		t.Errorf("asked %d times for a token that lives", asked)
	}
	expires = time.Now().Add(-time.Minute).Unix()
	if short := get("other.azurecr.cn"); short == get("other.azurecr.cn") {
		t.Error("a token that has ended was used again")
	}
	for _, host := range []string{"azurecr.io", ".azurecr.io", "team.azurecr.io.evil.com", "evil.com:443.azurecr.io", "docker.io"} {
		if got, err := source.Credentials(t.Context(), of(host)); len(got) != 0 || err != nil {
			t.Errorf("%s got %d credentials, error %v", host, len(got), err)
		}
	}
	status = http.StatusTemporaryRedirect
	if _, err := source.Credentials(t.Context(), of("third.azurecr.io")); err == nil || !strings.Contains(err.Error(), "307") || strings.Contains(err.Error(), "aad-token") {
		t.Errorf("a redirect: %v", err)
	}
	source.Identity = person{errors.New("no identity\nhere")}
	if _, err := source.Credentials(t.Context(), of("fourth.azurecr.io")); err == nil || err.Error() != "identity of Azure for fourth.azurecr.io: no identity here" {
		t.Errorf("error is %v", err)
	}
}
