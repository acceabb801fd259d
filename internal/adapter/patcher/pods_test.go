package patcher

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// TestPodSelector: what selects everything is refused.
func TestPodSelector(t *testing.T) {
	t.Parallel()
	for _, s := range []*metav1.LabelSelector{nil, {}, {MatchLabels: map[string]string{}}} {
		if got, err := podSelector(&kube.Workload{Selector: s}); err == nil {
			t.Errorf("the selector %v is read as %q, want an error", s, got)
		}
	}
	got, err := podSelector(&kube.Workload{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}})
	if err != nil || got.String() != "app=web" {
		t.Errorf("read as %v, %v", got, err)
	}
}
