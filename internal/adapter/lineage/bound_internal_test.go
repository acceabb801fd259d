package lineage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// hoard is an API server with many ReplicaSets of one Deployment, in one page.
type hoard struct {
	client.Reader

	all []appsv1.ReplicaSet
}

func (h hoard) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*appsv1.ReplicaSetList).Items = slices.Clone(h.all)
	return nil
}

// TestRevisionsAreBounded: a tenant keeps 300 revisions that each show 64 KB and have 250 KB of
// earlier numbers. The newest ones are kept and the current one, which is the oldest, and little
// of each.
func TestRevisionsAreBounded(t *testing.T) {
	t.Parallel()
	var shown strings.Builder
	for i := 0; shown.Len() < 65_400; i++ {
		fmt.Fprintf(&shown, "image/%03x~%x,", i, i)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	h := hoard{}
	for i := range 300 {
		rs := appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%03d", i), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
			Annotations: map[string]string{
				"deployment.kubernetes.io/revision":         fmt.Sprint(i + 1),
				"deployment.kubernetes.io/revision-history": strings.Repeat("1234567,", 30_000) + "7",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web", Controller: new(true)}},
		}}
		if i > 0 {
			rs.Spec.Template.Annotations = map[string]string{settings.Inputs: shown.String()}
		}
		h.all = append(h.all, rs)
	}
	w, err := kube.SlimWorkload(kube.Deployment(), d, settings.Native{})
	if err != nil {
		t.Fatal(err)
	}
	past, err := Revisions(t.Context(), h, w)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(past.Revisions); n != 64 {
		t.Fatalf("%d revisions are kept, want 64", n)
	}
	// The list is in the order of names.
	first, second := past.Revisions[0], past.Revisions[1]
	if want := fmt.Sprintf("web-%03d", 300-maxRevisions+1); first.Name != "web-000" || !first.Current || second.Name != want {
		t.Errorf("the first revisions are %s and %s, want web-000, which is current, and %s", first.Name, second.Name, want)
	}
	for _, r := range past.Revisions {
		if size := 16*len(r.Shown) + 8*len(r.Earlier) + len(r.Text); size > 16<<10 {
			t.Errorf("%d KiB are kept of revision %s", size>>10, r.Name)
		}
		if n := len(r.Earlier); n == 0 || r.Earlier[0] != 1234567 || r.Earlier[n-1] != 7 {
			t.Errorf("revision %s has %d earlier numbers, want the last ones", r.Name, n)
		}
	}
}

// TestTheLastCurrentRevisionCounts: a DaemonSet may have several of one template.
func TestTheLastCurrentRevisionCounts(t *testing.T) {
	t.Parallel()
	var all []timeline.Revision
	for _, name := range []string{"a", "b", "c"} {
		all = keepNewest(all, timeline.Revision{Name: name, Current: name != "c"})
	}
	if len(all) != 3 || all[0].Current || !all[1].Current || all[2].Current {
		t.Errorf("revisions %+v, want b as the current one", all)
	}
}
