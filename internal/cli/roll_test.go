package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

func TestRollTarget(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, text string
		group        string
		says         string // of the error, empty when there must be none
	}{
		"Plain":   {"as people type it", "deployment/web", "apps", ""},
		"Case":    {"as the API spells it", "Deployment/web", "apps", ""},
		"Known":   {"of two kinds of one name the one that needs no flag", "statefulset/db", "apps", ""},
		"Grouped": {"the group tells which", "statefulset.apps.kruise.io/db", "apps.kruise.io", ""},
		"BuiltIn": {"also of one that needs no flag", "statefulset.apps/db", "apps", ""},
		"Further": {"a name that only one has needs no group", "cloneset/web", "apps.kruise.io", ""},
		"Short":   {"kubectl's short names", "deploy/web", "apps", ""},
		"Plural":  {"kubectl takes the plural too", "statefulsets/db", "apps", ""},
		"Foreign": {"a name of another namespace", "deployment/shop/web", "", "it is in namespace shop"},
		"Unknown": {"the kinds are named as they can be typed", "pod/web", "", "rollout (ro), statefulset.apps.kruise.io, cloneset.apps.kruise.io"},
		"NoName":  {"a kind is no workload", "deployment", "", "want KIND/NAME"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			further := []string{"apps.kruise.io/v1beta1/StatefulSet=spec.template", "apps.kruise.io/v1alpha1/CloneSet=spec.template"}
			kind, _, err := workloadNamed(tc.text, "", further)
			if (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.says)
			}
			if err == nil && kind.Group != tc.group {
				t.Errorf("%s: kind %s, want one of group %q", tc.reason, kind, tc.group)
			}
		})
	}
}

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
	at := client.ObjectKey{Namespace: w.Namespace, Name: testkit.Web}
	r := &roll{
		options: &rollOptions{now: true}, client: c, env: Environment{Stdout: &out, Stderr: &out, Now: time.Now},
		live: cluster.NewLive(c, kube.NewHashers([]byte("key")), kube.Deployment(), at, time.Now),
	}
	if err := r.run(t.Context()); err != nil || !strings.Contains(out.String(), "rolled out") {
		t.Errorf("said %q, error %v", out.String(), err)
	}
	if shown := w.Shown(t, testkit.Web); !strings.Contains(shown, "configmap/app~") {
		t.Errorf("the template shows %q", shown)
	}
}
