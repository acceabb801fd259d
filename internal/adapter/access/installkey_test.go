package access

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/testkit"
)

func TestInstallationKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	keys := make([][]byte, 6)
	errs := make([]error, len(keys))
	var group sync.WaitGroup
	for i := range keys {
		c := testkit.NewClient(t, w.Cluster.Kubeconfig())
		group.Go(func() { keys[i], errs[i] = InstallationKey(t.Context(), c, w.Own, "key") })
	}
	group.Wait()
	for i, key := range keys {
		if errs[i] != nil || len(key) != installationKeySize || string(key) != string(keys[0]) {
			t.Errorf("process %d has a key of %d bytes, error %v; the same as the first: %t", i, len(key), errs[i], string(key) == string(keys[0]))
		}
	}
	secret := &corev1.Secret{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Own, Name: "key"}, secret); err != nil || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("the Secret is immutable: %v, error %v", secret.Immutable, err)
	}
}

func TestInstallationKeyThatIsTooShort(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	short := testkit.Secret("key", installationKeyField, "short")
	short.Namespace = w.Own
	w.Create(t, short)
	if key, err := InstallationKey(t.Context(), w.Client, w.Own, "key"); err == nil {
		t.Errorf("a key of %d bytes is taken", len(key))
	}
}
