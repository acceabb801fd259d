package revisions_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// world is one test's part of the shared control plane.
type world struct{ *walkthrough.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldOn(t, labtest.Shared(t, labtest.KWOK, labtest.ArgoRollouts))
	w.AwaitRolloutKind()
	return w
}

func newWorldOn(t *testing.T, cluster *labtest.Cluster) *world {
	t.Helper()
	return &world{walkthrough.NewWorld(t, cluster)}
}

// home makes a home directory whose kubeconfig is the given one, where
// configmap-attacher looks for it.
func home(t *testing.T, kubeconfig string) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(kubeconfig)
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, ".kube"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ".kube", "config"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustCreate(ctx context.Context, t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(ctx, o); err != nil {
		t.Fatal(err)
	}
}
