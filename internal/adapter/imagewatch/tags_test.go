package imagewatch_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// versions makes tags v1.0.0 to v1.N.9.
func versions(n int) []string {
	var tags []string
	for i := range n {
		tags = append(tags, fmt.Sprintf("v1.%d.%d", i/10, i%10))
	}
	return tags
}

// TestLongLists: ten thousand tags are read by page, once for all specs. A spec with a
// prefix reads one page the next time, because the list is known to be sorted. The
// registry links to an eleventh page, which is empty.
func TestLongLists(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	digest := push(t, s, "big", "latest", "a")
	if err := s.Tag("big", digest, versions(9999)...); err != nil {
		t.Fatal(err)
	}
	s.Counts()
	var progress []int
	r := newResolver(imagewatch.Options{Registries: registry.Options{Listed: func(_ string, tags int) { progress = append(progress, tags) }}}, s)
	prefixed, whole := ask(t, owner(), "%s/big:v1.998.*", s.Address), ask(t, owner(), "%s/big:^1", s.Address)
	check := func(reason string, q imagewatch.Question, tag string, want map[string]int) {
		t.Helper()
		if got := mustResolve(t, r, q); got.Tag != tag || got.Digest != digest {
			t.Errorf("%s: got %+v, want %s", reason, got, tag)
		}
		counts := s.Counts()
		delete(counts, "token")
		if !cmp.Equal(counts, want) {
			t.Errorf("%s: %v requests, want %v", reason, counts, want)
		}
	}
	for _, q := range []imagewatch.Question{prefixed, whole} {
		defer r.Watch(q, func() {}).Stop()
	}
	check("first", prefixed, "v1.998.9", map[string]int{"ping": 1, "tags": 11, "head": 1})
	check("another spec of the same list", whole, "v1.999.8", map[string]int{"head": 1})
	if want := []int{1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 10000}; !slices.Equal(progress, want) {
		t.Errorf("progress was %v", progress)
	}
	check("a spec that nobody watched", ask(t, owner(), "%s/big:v1.997.*", s.Address), "v1.997.9", map[string]int{"tags": 1, "head": 1})
	check("the same again", ask(t, owner(), "%s/big:v1.997.*", s.Address), "v1.997.9", map[string]int{})
	r.Forget(prefixed.Repository)
	check("behind the prefix", prefixed, "v1.998.9", map[string]int{"tags": 1, "head": 1})
}

// TestShorterListIsNoDowngrade: a list without the newest tag changes nothing while the
// registry has that tag; when it is gone, a check that is an interval later has to say so,
// and not one of those that follow a push.
func TestShorterListIsNoDowngrade(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	push(t, s, "app", "1.1", "old")
	newest := push(t, s, "app", "1.2", "new")
	var short sync.Map
	s.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
		if _, on := short.Load("on"); !on || registrylab.KindOf(r) != "tags" {
			return false
		}
		return json.NewEncoder(w).Encode(map[string]any{"tags": []string{"1.1"}}) == nil
	})
	r := newResolver(imagewatch.Options{}, s)
	answers := make(chan struct{}, 100)
	q := ask(t, owner(), "%s/app:1.*", s.Address)
	w := r.Watch(q, func() { answers <- struct{}{} })
	defer w.Stop()
	run(t, r)
	<-answers
	if got := w.View(); got.Tag != "1.2" || got.Digest != newest {
		t.Fatalf("got %+v", got)
	}

	// After a restart, the tag that runs is what is known.
	short.Store("on", true)
	fresh := newResolver(imagewatch.Options{}, s)
	q.Running = "1.2"
	if got := mustResolve(t, fresh, q); got.Tag != "1.2" {
		t.Errorf("after a restart a short list led to %s", got.Tag)
	}
	r.Check(q.Repository)
	checkedAgain(t, w)
	if got := w.View(); got.Tag != "1.2" || got.Err != nil {
		t.Errorf("a short list led to %+v", got)
	}

	if err := s.Untag("app", "1.2"); err != nil {
		t.Fatal(err)
	}
	r.Check(q.Repository)
	<-answers
	r.Check(q.Repository)
	checkedAgain(t, w)
	if got := w.View(); got.Tag != "1.2" || registry.KindOf(got.Err) != registry.Shrunk {
		t.Errorf("the newest tag is gone at two looks after a push: %+v", got)
	}
}

// TestGoneForAnInterval: the older tag is taken when the newest one is still gone at the
// next check of the schedule.
func TestGoneForAnInterval(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	var gone atomic.Bool
	s.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		switch tag := path.Base(r.URL.Path); {
		case tag == "list" && gone.Load():
			_, _ = io.WriteString(w, `{"tags": ["1.1"]}`)
		case tag == "list":
			_, _ = io.WriteString(w, `{"tags": ["1.1", "1.2"]}`)
		case tag == "1.2" && gone.Load():
			w.WriteHeader(http.StatusNotFound)
		default:
			return false
		}
		return true
	}
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{Interval: time.Minute})
		q := ask(t, owner(), "r.example/app:1.*")
		w := r.Watch(q, func() {})
		defer w.Stop()
		after(time.Second)
		gone.Store(true)
		r.Check(q.Repository)
		after(10 * time.Second) // three looks
		if got := w.View(); got.Tag != "1.2" || registry.KindOf(got.Err) != registry.Shrunk {
			t.Errorf("after a push: %+v", got)
		}
		gone.Store(false)
		after(2 * time.Minute)
		if got := w.View(); got.Tag != "1.2" || got.Err != nil {
			t.Errorf("it is back: %+v", got)
		}
		gone.Store(true)
		r.Check(q.Repository)
		after(30 * time.Second)
		r.Check(q.Repository)
		after(20 * time.Second)
		if got := w.View(); got.Tag != "1.2" {
			t.Errorf("gone for less than an interval: %+v", got)
		}
		after(2 * time.Minute)
		if got := w.View(); got.Tag != "1.1" || got.Err != nil {
			t.Errorf("gone for good: %+v", got)
		}
	})
}

func TestNoTagMatches(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	push(t, s, "app", "latest", "a")
	r := newResolver(imagewatch.Options{}, s)
	_, err := r.Resolve(t.Context(), ask(t, owner(), "%s/app:^1", s.Address))
	if registry.KindOf(err) != registry.NoMatch || !strings.Contains(err.Error(), "none of 1 matches ^1") {
		t.Errorf("error is %v", err)
	}
	for _, image := range []string{"%s/app:none", "%s/none:1", "%s/none:*"} {
		_, err := r.Resolve(t.Context(), ask(t, owner(), image, s.Address))
		if registry.KindOf(err) != registry.Missing || !strings.Contains(err.Error(), "404") {
			t.Errorf("%s: %v", image, err)
		}
	}
}
