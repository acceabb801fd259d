package identity

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// withoutAWS leaves nothing of this machine's settings.
func withoutAWS(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_ECR", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_PROFILE", "AWS_CA_BUNDLE"} {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_CONFIG_FILE", "/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
}

func endpointOf(t *testing.T, host string) string {
	t.Helper()
	region, ok := ecrRegion(host)
	if !ok {
		t.Fatalf("%s is not a registry of AWS", host)
	}
	settings, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(region))
	if err != nil {
		t.Fatal(err)
	}
	return ecrEndpoint(t.Context(), settings, sts.NewFromConfig(settings).Options().EndpointOptions, host)
}

// The addresses are those that the library's client would use.
func TestECREndpointIsTheLibrarys(t *testing.T) {
	withoutAWS(t)
	for _, domain := range []string{
		"eu-west-1.amazonaws.com", "us-gov-west-1.amazonaws.com", "cn-north-1.amazonaws.com.cn", "eusc-de-east-1.amazonaws.eu", "us-iso-east-1.c2s.ic.gov",
		"us-isob-east-1.sc2s.sgov.gov", "eu-isoe-west-1.cloud.adc-e.uk", "us-isof-south-1.csp.hci.ic.gov", "eu-central-1.on.aws",
	} {
		host := "123456789012.dkr.ecr." + domain
		region, _ := ecrRegion(host)
		for _, options := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			fips, dual := options[0], options[1]
			t.Setenv("AWS_USE_FIPS_ENDPOINT", strconv.FormatBool(fips))
			t.Setenv("AWS_USE_DUALSTACK_ENDPOINT", strconv.FormatBool(dual))
			want, err := ecr.NewDefaultEndpointResolverV2().ResolveEndpoint(t.Context(), ecr.EndpointParameters{Region: &region, UseFIPS: &fips, UseDualStack: &dual})
			if err != nil {
				t.Fatal(err)
			}
			if got := endpointOf(t, host); got != want.URI.String() {
				t.Errorf("%s, FIPS %t, dual stack %t: %s, want %s", host, fips, dual, got, want.URI.String())
			}
		}
	}
}

// A private network may have the API elsewhere.
func TestECREndpointIsConfigured(t *testing.T) {
	const host, usual = "123456789012.dkr.ecr.eu-west-1.amazonaws.com", "https://api.ecr.eu-west-1.amazonaws.com"
	profile := filepath.Join(t.TempDir(), "config")
	content := "[default]\nservices = private\nendpoint_url = https://profile\n[services private]\necr =\n  endpoint_url = https://profile-ecr\n"
	if err := os.WriteFile(profile, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environment map[string]string
		want        string
	}{
		"nothing":                           {nil, usual},
		"for all services":                  {map[string]string{"AWS_ENDPOINT_URL": "https://all"}, "https://all"},
		"for ECR":                           {map[string]string{"AWS_ENDPOINT_URL_ECR": "https://ecr"}, "https://ecr"},
		"for ECR wins":                      {map[string]string{"AWS_ENDPOINT_URL": "https://all", "AWS_ENDPOINT_URL_ECR": "https://ecr"}, "https://ecr"},
		"ignored":                           {map[string]string{"AWS_ENDPOINT_URL_ECR": "https://ecr", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, usual},
		"in the profile":                    {map[string]string{"AWS_CONFIG_FILE": profile}, "https://profile-ecr"},
		"environment wins over the profile": {map[string]string{"AWS_CONFIG_FILE": profile, "AWS_ENDPOINT_URL": "https://all"}, "https://all"},
	} {
		t.Run(name, func(t *testing.T) {
			withoutAWS(t)
			for key, value := range c.environment {
				t.Setenv(key, value)
			}
			if got := endpointOf(t, host); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// What the service says decides whether it is asked again, and is in the error.
func TestECRRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		asked  int
		want   string
	}{
		"denied":            {400, `{"__type":"com.amazonaws.ecr#AccessDeniedException","message":"not authorized to perform: ecr:GetAuthorizationToken"}`, 1, "400, api error AccessDeniedException: not authorized to perform: ecr:GetAuthorizationToken"},
		"throttled":         {400, `{"__type":"ThrottlingException","Message":"Rate exceeded"}`, 2, "api error ThrottlingException: Rate exceeded"},
		"down":              {503, `<html>`, 2, "api error 503 Service Unavailable"},
		"something else":    {200, `<html>`, 1, "the answer isn't JSON"},
		"an answer of none": {200, `{"authorizationData":[]}`, 1, "the answer does not contain a token"},
		"not a token":       {200, `{"authorizationData":[{"authorizationToken":"eA==","expiresAt":1.5e9}]}`, 1, "the token is not base64 of user:password"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != "{}" {
					t.Errorf("request %d has the body %q (%v)", asked, body, err)
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}))
			defer s.Close()
			withoutAWS(t)
			for key, value := range map[string]string{"AWS_ENDPOINT_URL_ECR": s.URL, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_MAX_ATTEMPTS": "2"} {
				t.Setenv(key, value)
			}
			_, _, err := fetchECR(t.Context(), "123456789012.dkr.ecr.eu-west-1.amazonaws.com")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error is %v, want %q in it", err, c.want)
			}
			if asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}
