package keychain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// SecretReader reads Secrets of one namespace.
type SecretReader interface {
	// Secret reads one Secret and does not keep it.
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

const (
	// maxBytes limits the pull secrets that are read for a pod, besides their number.
	maxBytes = 1 << 20
	// maxSmall is the size up to which texts are decoded at the same time. Larger ones wait for one
	// another.
	maxSmall = 64 << 10
	// maxUnread limits the Secrets that an error names.
	maxUnread = 5
)

// ErrTooManySecrets means that a pod has more pull secrets than are read for it.
var ErrTooManySecrets = fmt.Errorf("only the first %d pull secrets are read, up to %d KiB", podrefs.MaxPullSecrets, maxBytes>>10)

// PullSecrets are Secrets with credentials for registries.
type PullSecrets struct {
	Reader    SecretReader
	Namespace string
	Names     []string
	// large, if set, is held while a large text is decoded.
	large *semaphore.Weighted
}

// Credentials lists those of all Secrets, best match first. A missing or unreadable Secret
// doesn't affect the others: the error reports it, in case no credential is accepted.
func (p PullSecrets) Credentials(ctx context.Context, repository tagspec.Repository) ([]Credential, error) {
	var (
		r                   = ring{repository: repository}
		excess              error
		errs                []error
		tried, unread, size int
	)
	for i, name := range p.Names {
		if slices.Contains(p.Names[:i], name) {
			continue
		}
		if tried == podrefs.MaxPullSecrets || size >= maxBytes {
			excess = ErrTooManySecrets
			break
		}
		tried++
		read, err := p.add(ctx, &r, name)
		size += read
		if err == nil {
			continue
		}
		if unread++; unread <= maxUnread {
			errs = append(errs, fmt.Errorf("pull secret %s/%.100s: %w", p.Namespace, name, err))
		}
	}
	if unread > maxUnread {
		errs = append(errs, fmt.Errorf("and %d more pull secrets", unread-maxUnread))
	}
	return r.credentials(), errors.Join(append([]error{excess}, errs...)...)
}

// add adds the credentials of a Secret, and returns its size.
func (p PullSecrets) add(ctx context.Context, r *ring, name string) (int, error) {
	secret, err := p.Reader.Secret(ctx, p.Namespace, name)
	if err != nil {
		return 0, err
	}
	decode, text := r.addConfig, secret.Data[corev1.DockerConfigJsonKey]
	if text == nil {
		decode, text = r.addLegacy, secret.Data[corev1.DockerConfigKey]
	}
	if text == nil {
		return 0, fmt.Errorf("contains neither %s nor %s", corev1.DockerConfigJsonKey, corev1.DockerConfigKey)
	}
	if p.large != nil && len(text) > maxSmall {
		if err := p.large.Acquire(ctx, 1); err != nil {
			return 0, err
		}
		defer p.large.Release(1)
	}
	return len(text), decode(text)
}
