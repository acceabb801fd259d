package cluster_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestHeadersAreBounded: the headers of all workloads are kept, and an annotation may have 256 KiB.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	o := &metav1.ObjectMeta{Annotations: map[string]string{
		settings.Reload: "auto", settings.Hold: strings.Repeat("h", 200<<10), "example.com/note": "another tool's",
	}}
	h := cluster.HeaderOf(kube.Deployment(), o)
	if h.Annotations[settings.Reload] != "auto" || len(h.Annotations) != 2 {
		t.Errorf("the header has %d annotations, and reload is %q", len(h.Annotations), h.Annotations[settings.Reload])
	}
	if hold := len(h.Annotations[settings.Hold]); hold == 0 || hold > 2<<10 {
		t.Errorf("%d bytes of the hold are kept", hold)
	}
}
