package registry_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

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

// TestBeginningBehindAPrefix: only where that saves requests and misses nothing.
func TestBeginningBehindAPrefix(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{PageSize: 100})
	digest := push(t, s, "app", "latest", "a")
	if err := s.Tag("app", digest, versions(998)...); err != nil {
		t.Fatal(err)
	}
	r := newClient(registry.Options{}, s)
	check := func(reason, spec, tag string, want int) {
		t.Helper()
		q := ask(t, owner(), "%s/app:%s", s.Address, spec)
		s.Counts()
		if got := mustResolve(t, r, q); got.Tag != tag {
			t.Errorf("%s: got %s, want %s", reason, got.Tag, tag)
		}
		if got := s.Counts()["tags"]; got != want {
			t.Errorf("%s: %d pages, want %d", reason, got, want)
		}
	}
	check("the order is not known", "v1.98.*", "v1.98.9", 10)
	check("behind the prefix", "v1.98.*", "v1.98.9", 1)
	check("behind another one", "v1.0.*", "v1.0.9", 1)
	check("a tag that is the prefix itself", `/v1\.98\.9.*/`, "v1.98.9", 1)
	check("no prefix", "^1", "v1.99.7", 10)

	// A registry that does not know where to begin, as zot, is asked for everything.
	s.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("last") != "v1.98" {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	})
	check("no place to begin", "v1.98.*", "v1.98.9", 11)
	s.Spoil(nil)
	for range 20 {
		check("behind the prefix again", "v1.98.*", "v1.98.9", 1)
	}
	check("from the beginning now and then", "v1.98.*", "v1.98.9", 10)
}

// TestUnsortedListsAreReadInFull: GitHub and Quay list tags by age. To begin behind a
// prefix would miss some.
func TestUnsortedListsAreReadInFull(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{PageSize: 5})
	digest := push(t, s, "app", "v1.9", "a")
	if err := s.Tag("app", digest, versions(20)...); err != nil {
		t.Fatal(err)
	}
	// The same pages from the last one to the first: by age.
	pages := [][]string{{"v1.1.9", "v1.1.8"}, {"v0.1", "v1.1.10"}, {"v1.1.0", "latest"}}
	s.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
		if registrylab.KindOf(r) != "tags" {
			return false
		}
		at := len(r.URL.Query().Get("page"))
		if at+1 < len(pages) {
			w.Header().Set("Link", fmt.Sprintf(`<https://elsewhere.example/v2/wrong/tags/list?page=%s>; rel="next"`, strings.Repeat("x", at+1)))
		}
		return json.NewEncoder(w).Encode(map[string]any{"tags": pages[at]}) == nil
	})
	if err := s.Tag("app", digest, "v1.1.10"); err != nil {
		t.Fatal(err)
	}
	r := newClient(registry.Options{}, s)
	q := ask(t, owner(), "%s/app:v1.1.*", s.Address)
	for round := range 2 {
		s.Counts()
		if got := mustResolve(t, r, q); got.Tag != "v1.1.10" {
			t.Errorf("round %d: got %s", round, got.Tag)
		}
		if got := s.Counts()["tags"]; got != 3 {
			t.Errorf("round %d: %d pages, want 3", round, got)
		}
	}
}

// TestSmallPages: a registry that refuses the size of a page is asked for a smaller one.
func TestSmallPages(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	digest := push(t, s, "app", "v1.9", "a")
	if err := s.Tag("app", digest, versions(250)...); err != nil {
		t.Fatal(err)
	}
	s.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("n") != "1000" {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		_, err := w.Write([]byte(`{"errors":[{"code":"TOO_MANY_TAGS_REQUESTED","message":"max is 100"}]}`))
		return err == nil
	})
	s.Counts()
	r := newClient(registry.Options{}, s)
	q := ask(t, owner(), "%s/app:^1", s.Address)
	for round, want := range []int{4, 3} {
		if got := mustResolve(t, r, q); got.Tag != "v1.24.9" {
			t.Errorf("got %s", got.Tag)
		}
		if got := s.Counts()["tags"]; got != want {
			t.Errorf("round %d: %d requests, want %d", round, got, want)
		}
	}
}

// TestCutList: a list that ends in the middle is not a shorter list.
func TestCutList(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	push(t, s, "app", "1.1", "a")
	var cut atomic.Bool
	cut.Store(true)
	s.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
		if registrylab.KindOf(r) != "tags" || !cut.Load() {
			return false
		}
		w.Header().Set("Content-Length", "100")
		_, err := w.Write([]byte(`{"name": "app", "tags": ["1.0"`))
		return err == nil
	})
	r := newClient(registry.Options{}, s)
	q := ask(t, owner(), "%s/app:1.*", s.Address)
	if got, err := resolve(t.Context(), r, q); registry.KindOf(err) != registry.Unreachable {
		t.Errorf("got %+v, error %v", got, err)
	}
	cut.Store(false)
	if got := mustResolve(t, r, q); got.Tag != "1.1" {
		t.Errorf("got %s", got.Tag)
	}
}
