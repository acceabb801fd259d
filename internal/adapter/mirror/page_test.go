package mirror

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pagingServer is an API server that does not stream lists: it answers with
// pages, as long as it is asked for pages.
type pagingServer struct {
	client.WithWatch
	pages int
	// forgets is the page before which it forgets the list, once.
	forgets int

	mu    sync.Mutex
	asked []string
}

func (s *pagingServer) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options).AsListOptions()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf("version %q limit %d continue %q", o.ResourceVersion, o.Limit, o.Continue))
	page := 1
	_, _ = fmt.Sscanf(o.Continue, "after-%d", &page)
	if o.Continue != "" {
		page++
	}
	if page == s.forgets {
		s.forgets = 0
		return apierrors.NewResourceExpired("the continue parameter is too old")
	}
	maps := list.(*corev1.ConfigMapList)
	maps.ResourceVersion, maps.Continue = "100", ""
	if page < s.pages {
		maps.Continue = fmt.Sprint("after-", page)
	}
	maps.Items = []corev1.ConfigMap{*configMap(fmt.Sprint("a", page), page), *configMap(fmt.Sprint("b", page), page)}
	return nil
}

func (s *pagingServer) Watch(_ context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	o := (&client.ListOptions{}).ApplyOptions(options).AsListOptions()
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	return watch.NewFake(), nil
}

// TestMirrorListsInPages: where lists do not stream, they are asked for in pages,
// at a version for which the API server heeds the page size. A list that the API server
// forgets halfway is read again, in pages.
func TestMirrorListsInPages(t *testing.T) {
	t.Parallel()
	first, second, third := `version "" limit 4 continue ""`, `version "" limit 32 continue "after-1"`, `version "" limit 256 continue "after-2"` // the objects are small
	for name, c := range map[string]struct {
		forgets int
		want    []string
	}{
		"Complete":  {0, []string{first, second, third}},
		"Forgotten": {3, []string{first, second, third, first, second, third}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newNotes()
			server := &pagingServer{pages: 3, forgets: c.forgets}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				m.Run(ctx, server, Scope{List: &corev1.ConfigMapList{}, Namespace: metav1.NamespaceAll})
			}()
			for m.Len() == 0 {
				select {
				case <-ctx.Done():
					t.Fatal("nothing was listed")
				case <-time.After(10 * time.Millisecond):
				}
			}
			cancel()
			<-ended
			if diff := cmp.Diff(c.want, server.asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
			var names []string
			m.Each(func(s *slimMap) { names = append(names, s.Name) })
			slices.Sort(names)
			if diff := cmp.Diff([]string{"a1", "a2", "a3", "b1", "b2", "b3"}, names); diff != "" {
				t.Errorf("listed (-want +got)\n%s", diff)
			}
		})
	}
}
