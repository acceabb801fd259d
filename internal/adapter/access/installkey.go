package access

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

const (
	installationKeyField = "key"
	installationKeySize  = 32
)

// InstallationKey returns the key with which digests of Secrets are made. It is
// kept in a Secret of the controller's namespace; the first start makes it. Of
// two that start together one makes it and the other reads it.
func InstallationKey(ctx context.Context, c client.Client, namespace, name string) ([]byte, error) {
	key, err := ReadInstallationKey(ctx, c, namespace, name)
	if !apierrors.IsNotFound(err) {
		return key, err
	}
	at := client.ObjectKey{Namespace: namespace, Name: name}
	if err := createInstallationKey(ctx, c, at); err != nil && !apierrors.IsAlreadyExists(err) {
		if apierrors.IsNotFound(err) {
			err = &NoNamespaceError{Namespace: namespace}
		}
		return nil, fmt.Errorf("make the installation key, secret %s: %w", at, err)
	}
	return ReadInstallationKey(ctx, c, namespace, name)
}

// ReadInstallationKey returns the key that an installation has. Only the
// installation itself makes one.
func ReadInstallationKey(ctx context.Context, c client.Reader, namespace, name string) ([]byte, error) {
	at := client.ObjectKey{Namespace: namespace, Name: name}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, at, secret); err != nil {
		return nil, fmt.Errorf("read the installation key, secret %s: %w", at, err)
	}
	key := secret.Data[installationKeyField]
	if len(key) < installationKeySize {
		return nil, fmt.Errorf("secret %s: field %q has %d bytes, want at least %d; delete the secret to have a new one made", at, installationKeyField, len(key), installationKeySize)
	}
	return key, nil
}

// NoNamespaceError says that the namespace for the installation's own objects does not
// exist.
type NoNamespaceError struct {
	Namespace string
}

// Error names the namespace.
func (e *NoNamespaceError) Error() string {
	return "namespace " + e.Namespace + " does not exist"
}

func createInstallationKey(ctx context.Context, c client.Client, at client.ObjectKey) error {
	key := make([]byte, installationKeySize)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	immutable := true
	return c.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name},
		Immutable:  &immutable,
		Data:       map[string][]byte{installationKeyField: key},
	}, client.FieldOwner(kube.FieldManager))
}
