package lineage

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// shelf answers lists of ReplicaSets in pages, and counts the whole objects that it sends.
type shelf struct {
	client.Reader

	sets  []appsv1.ReplicaSet
	whole int
}

func (s *shelf) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	from, _ := strconv.Atoi(o.Continue)
	to := min(from+int(o.Limit), len(s.sets))
	page := s.sets[from:to]
	next := strconv.Itoa(to)
	if to == len(s.sets) {
		next = ""
	}
	if o.FieldSelector != nil {
		name, _ := o.FieldSelector.RequiresExactMatch("metadata.name")
		page, next = nil, ""
		for _, set := range s.sets {
			if set.Name == name {
				page = append(page, set)
			}
		}
	}
	switch l := list.(type) {
	case *appsv1.ReplicaSetList:
		l.Items, l.Continue = page, next
		s.whole += len(page)
	case *metav1.PartialObjectMetadataList:
		l.Items, l.Continue = nil, next
		for _, set := range page {
			l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: set.ObjectMeta})
		}
	default:
		return fmt.Errorf("list of %T", list)
	}
	return nil
}

// TestOthersRevisionsAreNotRead: workloads that select each other's revisions read whole only
// their own ones, and the page on which they notice.
func TestOthersRevisionsAreNotRead(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	for i := range 600 {
		rs := appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprintf("web-%03d", i),
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID(fmt.Sprint("uid-", i%30)), Controller: new(true)}},
		}}
		rs.Spec.Template.Annotations = map[string]string{"fat": strings.Repeat("x", 1<<10)}
		s.sets = append(s.sets, rs)
	}
	w := &kube.Workload{}
	w.Key = kube.Key{GroupKind: kube.Deployment().GroupKind(), Namespace: "shop", Name: "web"}
	w.Kind, w.UID, w.Selector = kube.Deployment(), "uid-7", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	past, err := Revisions(t.Context(), s, w)
	if err != nil {
		t.Fatal(err)
	}
	if len(past.Revisions) != 20 {
		t.Errorf("found %d revisions, want the 20 that the workload controls", len(past.Revisions))
	}
	if s.whole > 20+2*4 {
		t.Errorf("%d revisions were read whole, want 20 and two pages of 4", s.whole)
	}
}

// TestOwnRevisionsAreReadOnce: without others' revisions there is one list.
func TestOwnRevisionsAreReadOnce(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	for i := range 11 {
		s.sets = append(s.sets, appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("web-", i), OwnerReferences: []metav1.OwnerReference{{UID: "uid", Controller: new(true)}},
		}})
	}
	w := &kube.Workload{}
	w.Key = kube.Key{GroupKind: kube.Deployment().GroupKind(), Namespace: "shop", Name: "web"}
	w.Kind, w.UID, w.Selector = kube.Deployment(), "uid", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	past, err := Revisions(t.Context(), s, w)
	if err != nil || len(past.Revisions) != 11 || s.whole != 11 {
		t.Errorf("found %d revisions and read %d, want 11 and 11; error %v", len(past.Revisions), s.whole, err)
	}
}
