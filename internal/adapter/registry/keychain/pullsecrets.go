package keychain

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// SecretReader reads Secrets of one namespace.
type SecretReader interface {
	// Secret reads one Secret and does not keep it.
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// PullSecrets are Secrets with credentials for registries.
type PullSecrets struct {
	Reader    SecretReader
	Namespace string
	Names     []string
}

// PullSecretNames returns the names that count for a pod: its own or, without any, those of its
// service account, which the API server adds to the pod.
func PullSecretNames(pod, serviceAccount []string) []string {
	if len(pod) > 0 {
		return pod
	}
	return serviceAccount
}

// Credentials lists those of all Secrets, best match first. A missing or unreadable Secret
// doesn't affect the others: the error reports it, in case no credential is accepted.
func (p PullSecrets) Credentials(ctx context.Context, repository tagspec.Repository) ([]Credential, error) {
	var (
		r    ring
		errs []error
	)
	for _, name := range p.Names {
		if err := p.add(ctx, &r, name); err != nil {
			errs = append(errs, fmt.Errorf("pull secret %s/%s: %w", p.Namespace, name, err))
		}
	}
	return r.find(repository), errors.Join(errs...)
}

func (p PullSecrets) add(ctx context.Context, r *ring, name string) error {
	secret, err := p.Reader.Secret(ctx, p.Namespace, name)
	if err != nil {
		return err
	}
	if text, ok := secret.Data[corev1.DockerConfigJsonKey]; ok {
		_, err := r.addConfig(text)
		return err
	}
	if text, ok := secret.Data[corev1.DockerConfigKey]; ok {
		return r.addLegacy(text)
	}
	return fmt.Errorf("has neither %s nor %s", corev1.DockerConfigJsonKey, corev1.DockerConfigKey)
}
