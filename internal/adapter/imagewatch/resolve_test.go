package imagewatch_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// announced is a source that tells when it has been asked a number of times.
type announced struct {
	known
	asked *sync.WaitGroup
}

func (a announced) Credentials(ctx context.Context, r tagspec.Repository) ([]keychain.Credential, error) {
	a.asked.Done()
	return a.known.Credentials(ctx, r)
}

// TestOneRequestForManyAskers: twenty images that a hundred askers want cost twenty
// requests, and a few for tokens.
func TestOneRequestForManyAskers(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	digests := map[string]string{}
	for i := range 20 {
		repository := fmt.Sprintf("team/app-%02d", i)
		digests[s.Address+"/"+repository] = push(t, s, repository, "1", repository)
	}
	s.Counts()
	r := newResolver(imagewatch.Options{}, s)
	var (
		questions []imagewatch.Question
		asked     sync.WaitGroup
	)
	asked.Add(100)
	s.Spoil(func(_ http.ResponseWriter, r *http.Request) bool {
		if registrylab.KindOf(r) == "ping" {
			asked.Wait() // All of them are there before the first token is asked for.
		}
		return false
	})
	for i := range 100 {
		q := ask(t, announced{owner(), &asked}, "%s/team/app-%02d:1", s.Address, i%20)
		q.Asker = fmt.Sprintf("namespace-%d/pull", i) // Many Secrets that say the same.
		questions = append(questions, q)
	}
	for _, round := range []struct {
		name string
		want map[string]int // with tokens
		most int            // tokens
	}{
		{"first", map[string]int{"ping": 1, "head": 20}, 2},
		{"within the interval", map[string]int{}, 0},
		{"next", map[string]int{"head": 20}, 0},
	} {
		if round.name != "first" {
			asked.Add(100)
		}
		if round.name == "next" {
			for _, q := range questions {
				r.Forget(q.Repository)
			}
		}
		for i, got := range all(t, r, questions) {
			if want := digests[questions[i].Repository.String()]; got.Digest != want || got.Tag != "1" {
				t.Errorf("%s is %s, want %s", questions[i].Repository, got.Digest, want)
			}
		}
		counts := s.Counts()
		if tokens := counts["token"]; tokens > round.most {
			t.Errorf("%s: %d requests for tokens, want at most %d", round.name, tokens, round.most)
		}
		delete(counts, "token")
		if !cmp.Equal(counts, round.want) {
			t.Errorf("%s: %v requests, want %v", round.name, counts, round.want)
		}
	}
}

// TestAnswersAreNotSharedAcrossCredentials: who may not read hears nothing from who may.
func TestAnswersAreNotSharedAcrossCredentials(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	push(t, s, "team/app", "1", "a")
	s.Tokens.AddReader("other", "other-password", "team/other")
	r := newResolver(imagewatch.Options{}, s)
	mustResolve(t, r, ask(t, owner(), "%s/team/app:1", s.Address))
	mustResolve(t, r, ask(t, owner(), "%s/team/app:*", s.Address))
	other := known{{Username: "other", Password: "other-password"}}
	for _, spec := range []string{"1", "*"} {
		if got, err := r.Resolve(t.Context(), ask(t, other, "%s/team/app:%s", s.Address, spec)); registry.KindOf(err) != registry.Denied {
			t.Errorf("%s: another user got %+v, error %v", spec, got, err)
		}
	}
}

func TestPlatforms(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	index := push(t, s, "team/app", "1", "a")
	single, err := s.PushImage(t.Context(), "team/app", "single", "b")
	if err != nil {
		t.Fatal(err)
	}
	s.Counts()
	r := newResolver(imagewatch.Options{}, s)
	for _, c := range []struct {
		reason, tag, platforms string
		child                  bool
		want                   string // a digest; "child" is neither of the two
		wantErr                string
	}{
		{"no platform", "1", "", false, index, ""},
		{"one that is there", "1", "linux/amd64", false, index, ""},
		{"all of them", "1", "linux/amd64 linux/arm64", false, index, ""},
		{"the usual variant", "1", "linux/arm64/v8", false, index, ""},
		{"one that is missing", "1", "linux/amd64 windows/amd64", false, "", "supports linux/amd64, linux/arm64/v8, but not windows/amd64"},
		{"another variant", "1", "linux/arm64/v9", false, "", "but not linux/arm64/v9"},
		{"the child", "1", "linux/arm64", true, "child", ""},
		{"the child of a missing one", "1", "linux/s390x", true, "", "but not linux/s390x"},
		{"a single image", "single", "linux/amd64", false, single, ""},
		{"a single image of another platform", "single", "linux/arm64", false, "", "supports linux/amd64, but not linux/arm64"},
		{"a single image has no child", "single", "linux/arm64", true, single, ""},
	} {
		q := ask(t, owner(), "%s/team/app:%s", s.Address, c.tag)
		q.Child = c.child
		for text := range strings.FieldsSeq(c.platforms) {
			q.Platforms = append(q.Platforms, platform(t, text))
		}
		got, err := r.Resolve(t.Context(), q)
		if c.wantErr != "" {
			if registry.KindOf(err) != registry.NoPlatform || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("%s: got %v, error %v, want %q", c.reason, got, err, c.wantErr)
			}
			continue
		}
		isChild := err == nil && got.Digest != index && got.Digest != single
		if err != nil || got.Digest != c.want && (c.want != "child" || !isChild) {
			t.Errorf("%s: got %+v, error %v, want %s", c.reason, got, err, c.want)
		}
	}
	// What has a digest never changes: it was read once.
	counts := s.Counts()
	delete(counts, "token")
	if want := map[string]int{"ping": 1, "head": 2, "manifest": 2, "blob": 1}; !cmp.Equal(counts, want) {
		t.Errorf("%v requests, want %v", counts, want)
	}
	if _, err := registry.ParsePlatform("amd64"); err == nil {
		t.Error("a platform without an operating system was read")
	}
}

// TestRefusedConfiguration: a registry that refuses the configuration of an image outside an index is
// asked for its digest, where its platform doesn't matter.
func TestRefusedConfiguration(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	single, err := s.PushImage(t.Context(), "team/app", "single", "b")
	if err != nil {
		t.Fatal(err)
	}
	s.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
		refused := strings.Contains(r.URL.Path, "/blobs/")
		if refused {
			w.WriteHeader(http.StatusForbidden)
		}
		return refused
	})
	r := newResolver(imagewatch.Options{}, s)
	q := ask(t, owner(), "%s/team/app:single", s.Address)
	q.Platforms, q.Child = []v1.Platform{platform(t, "linux/amd64")}, true
	if got := mustResolve(t, r, q); got.Digest != single {
		t.Errorf("got %s, want %s", got.Digest, single)
	}
	q.Child = false
	if got, err := r.Resolve(t.Context(), q); registry.KindOf(err) != registry.Denied {
		t.Errorf("where the platform matters: %+v, error %v", got, err)
	}
}
