package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestRollDecidesAnewAfterAConflict: the controllers of the cluster write the
// status of a workload at any time, also between our reading and our patch.
func TestRollDecidesAnewAfterAConflict(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	var first sync.Once
	c := interceptor.NewClient(testkit.NewClient(t, w.Cluster.Kubeconfig()), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			first.Do(func() { w.Patch(t, &appsv1.Deployment{}, testkit.Web, `{"metadata":{"labels":{"somebody":"else"}}}`) })
			return c.Patch(ctx, o, p, options...)
		},
	})
	var out bytes.Buffer
	r := &roll{
		options: &rollOptions{now: true}, client: c, env: Environment{Stdout: &out, Stderr: &out},
		kind: kube.Deployment(), at: client.ObjectKey{Namespace: w.Namespace, Name: testkit.Web},
		hashers: nativeHashers([]byte("key")),
	}
	if err := r.run(t.Context()); err != nil || !strings.Contains(out.String(), "rolled out") {
		t.Errorf("said %q, error %v", out.String(), err)
	}
	if shown := w.Shown(t, testkit.Web); !strings.Contains(shown, "configmap/app~") {
		t.Errorf("the template shows %q", shown)
	}
}
