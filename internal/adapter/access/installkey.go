package access

import (
	"context"
	"crypto/hmac"
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

// InstallationKey returns the key for Secret digests. It is kept in a Secret of the controller's
// namespace; the first start creates it. If two processes start together, one creates it and the
// other reads it.
func InstallationKey(ctx context.Context, c client.Client, namespace, name string) ([]byte, error) {
	key, err := ReadInstallationKey(ctx, c, namespace, name)
	if !apierrors.IsNotFound(err) {
		return key, err
	}
	key = make([]byte, installationKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	if _, err := createInstallationKey(ctx, c, client.ObjectKey{Namespace: namespace, Name: name}, key); err != nil {
		return nil, err
	}
	return ReadInstallationKey(ctx, c, namespace, name)
}

// KeepInstallationKey restores the deleted Secret with the key, for a process that still has the
// key. A Secret with another key is an error, and stays.
func KeepInstallationKey(ctx context.Context, c client.Client, namespace, name string, key []byte) (remade bool, err error) {
	at := client.ObjectKey{Namespace: namespace, Name: name}
	current, err := ReadInstallationKey(ctx, c, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return createInstallationKey(ctx, c, at, key)
	case err != nil:
		return false, err
	case !hmac.Equal(current, key):
		return false, fmt.Errorf("secret %s contains another key than this process uses: the next start takes a new baseline for all Secrets, and does not deliver earlier changes", at)
	}
	return false, nil
}

// ReadInstallationKey returns the key of an installation. Only the installation itself creates
// one.
func ReadInstallationKey(ctx context.Context, c client.Reader, namespace, name string) ([]byte, error) {
	at := client.ObjectKey{Namespace: namespace, Name: name}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, at, secret); err != nil {
		return nil, fmt.Errorf("read the installation key, secret %s: %w", at, err)
	}
	key := secret.Data[installationKeyField]
	if len(key) < installationKeySize {
		return nil, fmt.Errorf("secret %s: field %q has %d bytes, want at least %d; delete the secret, and the controller creates a new one", at, installationKeyField, len(key), installationKeySize)
	}
	return key, nil
}

// NoNamespaceError means that the namespace for the installation's own objects does not exist.
type NoNamespaceError struct {
	Namespace string
}

// Error names the namespace.
func (e *NoNamespaceError) Error() string {
	return "namespace " + e.Namespace + " does not exist"
}

// createInstallationKey reports whether this process created the Secret.
func createInstallationKey(ctx context.Context, c client.Client, at client.ObjectKey, key []byte) (bool, error) {
	immutable := true
	err := c.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name},
		Immutable:  &immutable,
		Data:       map[string][]byte{installationKeyField: key},
	}, client.FieldOwner(kube.FieldManager))
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return err == nil, nil
	case apierrors.IsNotFound(err):
		err = &NoNamespaceError{Namespace: at.Namespace}
	}
	return false, fmt.Errorf("create the installation key, secret %s: %w", at, err)
}
