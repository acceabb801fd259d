package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// ECR provides credentials for private AWS registries. The zero value is ready.
type ECR struct{ leases leases }

// Credentials returns credentials for an AWS registry, and none for others.
func (e *ECR) Credentials(ctx context.Context, repository tagspec.Repository) ([]keychain.Credential, error) {
	if _, ok := ecrRegion(repository.Host); !ok {
		return nil, nil
	}
	credential, err := e.leases.get(ctx, repository.Host, func(ctx context.Context) (keychain.Credential, time.Time, error) {
		return fetchECR(ctx, repository.Host)
	})
	return list(credential, "AWS", repository.Host, err)
}

// Forget drops the token of a registry that refused it.
func (e *ECR) Forget(repository tagspec.Repository) {
	if _, ok := ecrRegion(repository.Host); ok {
		e.leases.forget(repository.Host)
	}
}

// ecrRegion parses the region of a private AWS registry. It matches the whole host: the
// credentials are sent there.
func ecrRegion(host string) (string, bool) {
	name := regexp.MustCompile(`^\d{12}\.(?:dkr\.ecr(?:-fips)?|dkr-ecr(?:-fips)?)\.([a-z]{2}[a-z0-9-]*)\.` +
		`(?:amazonaws\.com(?:\.cn)?|amazonaws\.eu|on\.aws|c2s\.ic\.gov|sc2s\.sgov\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov)$`)
	match := name.FindStringSubmatch(host)
	if match == nil {
		return "", false
	}
	return match[1], true
}

func fetchECR(ctx context.Context, host string) (keychain.Credential, time.Time, error) {
	region, _ := ecrRegion(host)
	options := []func(*config.LoadOptions) error{config.WithRegion(region)}
	if strings.Contains(host, "ecr-fips.") {
		options = append(options, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	settings, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return keychain.Credential{}, time.Time{}, err
	}
	answer, err := requestECRToken(ctx, settings, host)
	if err != nil {
		return keychain.Credential{}, time.Time{}, err
	}
	if len(answer.AuthorizationData) == 0 || answer.AuthorizationData[0].AuthorizationToken == "" || answer.AuthorizationData[0].ExpiresAt == 0 {
		return keychain.Credential{}, time.Time{}, errors.New("the answer does not contain a token")
	}
	data := answer.AuthorizationData[0]
	text, err := base64.StdEncoding.DecodeString(data.AuthorizationToken)
	user, password, found := strings.Cut(string(text), ":")
	if err != nil || !found {
		return keychain.Credential{}, time.Time{}, errors.New("the token is not base64 of user:password")
	}
	return keychain.Credential{Username: user, Password: password}, time.Unix(int64(data.ExpiresAt), 0), nil
}
