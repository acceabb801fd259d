package identity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ecrAnswer is the part of the response to GetAuthorizationToken that is used. The time is in seconds since 1970.
type ecrAnswer struct {
	AuthorizationData []struct {
		AuthorizationToken string  `json:"authorizationToken"`
		ExpiresAt          float64 `json:"expiresAt"`
	} `json:"authorizationData"`
}

// requestECRToken sends the one request that is needed of ECR's API. The library's client for ECR adds 0.5 MB to the program. Its identities,
// signature and rules for retries are used here too, and its HTTP client as the client for STS has it, which is linked in any case.
func requestECRToken(ctx context.Context, settings aws.Config, host string) (ecrAnswer, error) {
	shared := sts.NewFromConfig(settings).Options()
	endpoint := ecrEndpoint(ctx, settings, shared.EndpointOptions, host)
	for attempt := 1; ; attempt++ {
		answer, err := sendECR(ctx, shared, endpoint)
		if err == nil || attempt >= shared.Retryer.MaxAttempts() || !shared.Retryer.IsErrorRetryable(err) {
			return answer, err
		}
		pause, delayErr := shared.Retryer.RetryDelay(attempt, err)
		if delayErr != nil {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(pause):
		}
	}
}

func sendECR(ctx context.Context, shared sts.Options, endpoint string) (ecrAnswer, error) {
	body := []byte("{}")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return ecrAnswer{}, err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken")
	keys, err := shared.Credentials.Retrieve(ctx)
	if err != nil {
		return ecrAnswer{}, err
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, keys, request, hex.EncodeToString(sum[:]), "ecr", shared.Region, time.Now()); err != nil {
		return ecrAnswer{}, err
	}
	response, err := shared.HTTPClient.Do(request)
	if err != nil {
		return ecrAnswer{}, err
	}
	defer response.Body.Close()
	content := json.NewDecoder(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode != http.StatusOK {
		return ecrAnswer{}, ecrRefusal(response, content)
	}
	var answer ecrAnswer
	if err := content.Decode(&answer); err != nil {
		return ecrAnswer{}, fmt.Errorf("the answer isn't JSON: %w", err)
	}
	return answer, nil
}

// ecrRefusal is an error of the type that the rules for retries know.
func ecrRefusal(response *http.Response, content *json.Decoder) error {
	var refusal struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if content.Decode(&refusal) != nil || refusal.Type == "" {
		refusal.Type = response.Status
	}
	// The type may have a namespace: "com.amazonaws.ecr#ServerException".
	_, code, found := strings.Cut(refusal.Type, "#")
	if !found {
		code = refusal.Type
	}
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: response},
		Err:      &smithy.GenericAPIError{Code: code, Message: refusal.Message},
	}
}

// ecrEndpoint is the address of the API for a registry, unless the environment or profile names another one.
func ecrEndpoint(ctx context.Context, settings aws.Config, options sts.EndpointResolverOptions, host string) string {
	if configured := configuredEndpoint(ctx, settings); configured != "" {
		return configured
	}
	_, domain, _ := strings.Cut(host, "."+settings.Region+".")
	if domain == "on.aws" {
		domain = "amazonaws.com"
	}
	name := "ecr"
	if options.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled {
		name = "ecr-fips"
	}
	if options.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled {
		return "https://" + name + "." + settings.Region + "." + dualStackDomain(domain)
	}
	return "https://api." + name + "." + settings.Region + "." + domain
}

// dualStackDomain is where the API of a partition has IPv6 addresses too.
func dualStackDomain(domain string) string {
	return map[string]string{
		"amazonaws.com":    "api.aws",
		"amazonaws.com.cn": "api.amazonwebservices.com.cn",
		"amazonaws.eu":     "api.amazonwebservices.eu",
		"c2s.ic.gov":       "api.aws.ic.gov",
		"sc2s.sgov.gov":    "api.aws.scloud",
		"cloud.adc-e.uk":   "api.cloud-aws.adc-e.uk",
		"csp.hci.ic.gov":   "api.aws.hci.ic.gov",
	}[domain]
}

// configuredEndpoint is the address that the environment or profile names for ECR or, without one, for every service.
func configuredEndpoint(ctx context.Context, settings aws.Config) string {
	if ignored, _, _ := config.GetIgnoreConfiguredEndpoints(ctx, settings.ConfigSources); ignored {
		return ""
	}
	_, general := os.LookupEnv("AWS_ENDPOINT_URL")
	_, own := os.LookupEnv("AWS_ENDPOINT_URL_ECR")
	for _, source := range settings.ConfigSources {
		known, ok := source.(interface {
			GetServiceBaseEndpoint(ctx context.Context, service string) (string, bool, error)
		})
		if !ok || general && !own {
			continue
		}
		if endpoint, found, err := known.GetServiceBaseEndpoint(ctx, "ECR"); found && err == nil {
			return endpoint
		}
	}
	return aws.ToString(settings.BaseEndpoint)
}
