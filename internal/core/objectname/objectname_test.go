package objectname_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// TestFull: there is one form, and it distinguishes kinds of the same name.
func TestFull(t *testing.T) {
	t.Parallel()
	for want, tc := range map[string]struct {
		reason string
		kind   schema.GroupKind
	}{
		"deployment/web in namespace shop":                 {"one of Kubernetes", schema.GroupKind{Group: "apps", Kind: "Deployment"}},
		"cronjob/web in namespace shop":                    {"one of Kubernetes", schema.GroupKind{Group: "batch", Kind: "CronJob"}},
		"configmap/web in namespace shop":                  {"the core group has no name", schema.GroupKind{Kind: "ConfigMap"}},
		"rollout/web in namespace shop":                    {"Argo's is known", schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}},
		"statefulset.apps.kruise.io/web in namespace shop": {"its name is that of a kind of Kubernetes", schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}},
		"rollout.rollouts.kruise.io/web in namespace shop": {"its name is that of Argo's", schema.GroupKind{Group: "rollouts.kruise.io", Kind: "Rollout"}},
	} {
		if got := objectname.Full(tc.kind, "shop", "web"); got != want {
			t.Errorf("%s: %s, want %s", tc.reason, got, want)
		}
		if got := objectname.OfID(tc.kind.String() + "/shop/web"); got != want {
			t.Errorf("%s: by its ID %s, want %s", tc.reason, got, want)
		}
	}
	if got := objectname.Full(schema.GroupKind{Kind: "Namespace"}, "", "shop"); got != "namespace/shop" {
		t.Errorf("a namespace is %s", got)
	}
	if got := objectname.OfID("web"); got != "web" {
		t.Errorf("what is no ID becomes %s", got)
	}
}
