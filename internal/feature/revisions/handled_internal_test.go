package revisions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
)

// TestIsHandled: a Job that finds its work done by an earlier one waits for a deploy that changes
// nothing but the workload.
func TestIsHandled(t *testing.T) {
	t.Parallel()
	older, newest := &lineage.Holder{Name: "web-1", UID: "1"}, &lineage.Holder{Name: "web-2", UID: "2"}
	h := lineage.History{Current: newest, Holders: []*lineage.Holder{older, newest}}
	owner := func(uid types.UID, controller bool) metav1.OwnerReference {
		return metav1.OwnerReference{UID: uid, Controller: &controller}
	}
	for name, tc := range map[string]struct {
		reason string
		owners []metav1.OwnerReference
		want   bool
	}{
		"LeftByTheOriginal": {"the original wrote one owner, although the older revision uses the object too", []metav1.OwnerReference{owner("2", true)}, true},
		"LeftByUs":          {"both own it", []metav1.OwnerReference{owner("1", false), owner("2", true)}, true},
		"Another":           {"another program controls it, so the newest revision can't", []metav1.OwnerReference{owner("9", true), owner("2", false)}, true},
		"New":               {"the object is new", nil, false},
		"Deployed":          {"the deploy was applied before this run", []metav1.OwnerReference{owner("1", true)}, false},
		"RolledBack":        {"the newest revision was the newest before", []metav1.OwnerReference{owner("1", true), owner("2", false)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isHandled(h, tc.owners); got != tc.want {
				t.Errorf("%s: handled is %t", tc.reason, got)
			}
		})
	}
}
