package pages_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
)

// pager answers lists of ConfigMaps in pages, and notes how many bytes each page had.
type pager struct {
	client.Reader

	sizes  []int // of the objects
	pages  []int
	limits []int64
	fail   int // the page that fails, counted from 1
}

func (p *pager) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	p.limits = append(p.limits, o.Limit)
	if p.fail == len(p.limits) {
		return errors.New("no answer")
	}
	from, _ := strconv.Atoi(o.Continue)
	into := list.(*corev1.ConfigMapList)
	*into = corev1.ConfigMapList{}
	bytes := 0
	for i := from; i < len(p.sizes) && i < from+int(o.Limit); i++ {
		cm := corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", p.sizes[i])}}
		cm.Name = fmt.Sprint(i)
		into.Items = append(into.Items, cm)
		bytes += p.sizes[i]
		if i+1 < len(p.sizes) {
			into.Continue = strconv.Itoa(i + 1)
		} else {
			into.Continue = ""
		}
	}
	p.pages = append(p.pages, bytes)
	return nil
}

func TestItems(t *testing.T) {
	t.Parallel()
	large := slices.Repeat([]int{900 << 10}, 40)
	small := slices.Repeat([]int{2 << 10}, 2000)
	tests := map[string]struct {
		reason    string
		sizes     []int
		wantPages int // at most
	}{
		"None":         {"an empty list is one page", nil, 1},
		"OnePage":      {"as many as the first page has", small[:4], 1},
		"Small":        {"pages grow for small objects", small, 9},
		"Large":        {"pages stay small for large objects", large, 20},
		"SmallThenFat": {"a page that was too large is followed by a small one", append(slices.Clone(small[:80]), large...), 40},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, seen := &pager{sizes: tc.sizes}, 0
			for o, err := range pages.Items(t.Context(), p, &corev1.ConfigMapList{}) {
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if o.GetName() != fmt.Sprint(seen) {
					t.Fatalf("%s: object %q, want %d", tc.reason, o.GetName(), seen)
				}
				seen++
			}
			if seen != len(tc.sizes) || len(p.pages) > tc.wantPages {
				t.Errorf("%s: %d of %d objects in %d pages, want at most %d: limits %v", tc.reason, seen, len(tc.sizes), len(p.pages), tc.wantPages, p.limits)
			}
		})
	}
	t.Run("Bytes", func(t *testing.T) {
		t.Parallel()
		p := &pager{sizes: large}
		for _, err := range pages.Items(t.Context(), p, &corev1.ConfigMapList{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if most := slices.Max(p.pages); most > 4<<20 {
			t.Errorf("a page of large objects has %d bytes, want at most 4 MiB", most)
		}
	})
}

// custom answers lists of objects whose size isn't known, such as Rollouts.
type custom struct {
	client.Reader

	objects, pages int
}

func (c *custom) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	c.pages++
	into := list.(*unstructured.UnstructuredList)
	*into = unstructured.UnstructuredList{Object: map[string]any{}}
	from, _ := strconv.Atoi(o.Continue)
	for i := from; i < min(c.objects, from+int(o.Limit)); i++ {
		into.Items = append(into.Items, unstructured.Unstructured{Object: map[string]any{}})
	}
	if next := from + int(o.Limit); next < c.objects {
		into.SetContinue(strconv.Itoa(next))
	}
	return nil
}

func TestItemsOfCustomResources(t *testing.T) {
	t.Parallel()
	c, seen := &custom{objects: 5000}, 0
	for _, err := range pages.Items(t.Context(), c, &unstructured.UnstructuredList{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
	}
	if seen != c.objects || c.pages > 15 {
		t.Errorf("%d of %d objects in %d pages, want at most 15", seen, c.objects, c.pages)
	}
}

func TestItemsStops(t *testing.T) {
	t.Parallel()
	p := &pager{sizes: slices.Repeat([]int{10}, 20)}
	for range pages.Items(t.Context(), p, &corev1.ConfigMapList{}) {
		break
	}
	if diff := cmp.Diff([]int64{4}, p.limits); diff != "" {
		t.Errorf("pages after the caller has stopped (-want +got):\n%s", diff)
	}
	p = &pager{sizes: slices.Repeat([]int{10}, 20), fail: 2}
	var last error
	seen := 0
	for _, err := range pages.Items(t.Context(), p, &corev1.ConfigMapList{}) {
		seen, last = seen+1, err
	}
	if seen != 5 || last == nil {
		t.Errorf("%d results and the error %v, want four objects and then the error of the second page", seen, last)
	}
}

// crowded is an API server that counts the lists it is asked for at the same time.
type crowded struct {
	client.Reader

	asked, most atomic.Int32
	pages       atomic.Int32
}

func (c *crowded) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	now := c.asked.Add(1)
	defer c.asked.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	for range 100 {
		runtime.Gosched()
	}
	into := list.(*corev1.ConfigMapList)
	if len(into.Items) > 0 {
		return errors.New("the page before is kept while others wait")
	}
	into.Items = make([]corev1.ConfigMap, 4)
	into.Continue = "more"
	if c.pages.Add(1)%5 == 0 {
		into.Continue = ""
	}
	return nil
}

// TestEachSharesTheMemory: however many workers read lists, two pages are in memory.
func TestEachSharesTheMemory(t *testing.T) {
	t.Parallel()
	c := &crowded{}
	var workers sync.WaitGroup
	var seen atomic.Int32
	for range 20 {
		workers.Go(func() {
			err := pages.Each(t.Context(), c, &corev1.ConfigMapList{}, func(client.Object) bool { seen.Add(1); return true })
			if err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if c.most.Load() > 2 || seen.Load() != 4*c.pages.Load() {
		t.Errorf("%d lists at the same time, want at most 2; %d objects of %d pages", c.most.Load(), seen.Load(), c.pages.Load())
	}
}

// TestEachEnds: a caller that has seen enough, an error and a context that is over end a list.
func TestEachEnds(t *testing.T) {
	t.Parallel()
	seen := 0
	err := pages.Each(t.Context(), &crowded{}, &corev1.ConfigMapList{}, func(client.Object) bool { seen++; return seen < 6 })
	if err != nil || seen != 6 {
		t.Errorf("%d objects and error %v, want 6 and none", seen, err)
	}
	failing := &pager{sizes: []int{1, 1, 1, 1, 1}, fail: 2}
	if err := pages.Each(t.Context(), failing, &corev1.ConfigMapList{}, func(client.Object) bool { return true }); err == nil || err.Error() != "no answer" {
		t.Errorf("error %v, want that of the second page", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pages.Each(over, &pager{}, &corev1.ConfigMapList{}, func(client.Object) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
