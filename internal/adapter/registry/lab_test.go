package registry_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

// startRegistry runs a real registry for one test.
func startRegistry(t *testing.T, o registrylab.Options) *registrylab.Server {
	t.Helper()
	o.Folder, o.Progress = t.TempDir(), os.Stderr
	s, err := registrylab.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newResolver makes one that trusts registries of the lab.
func newResolver(o registry.Options, servers ...*registrylab.Server) *registry.Resolver {
	o.Hosts = map[string]registry.Host{}
	for _, s := range servers {
		o.Hosts[s.Address] = registry.Host{CA: s.CA}
	}
	if o.Interval == 0 {
		o.Interval = time.Hour
	}
	return registry.New(o)
}

// known are fixed credentials.
type known []keychain.Credential

func (k known) Credentials(context.Context, tagspec.Repository) ([]keychain.Credential, error) {
	return k, nil
}

func owner() known { return known{{Username: registrylab.User, Password: registrylab.Password}} }

// ask makes a question about an image, such as "127.0.0.1:5000/app:1.*".
func ask(t *testing.T, as keychain.Source, image string, args ...any) registry.Question {
	t.Helper()
	parsed, err := tagspec.ParseImage(fmt.Sprintf(image, args...))
	if err != nil {
		t.Fatal(err)
	}
	return registry.Question{Repository: parsed.Repository, Spec: parsed.Spec, Credentials: as}
}

// push pushes an index and returns its digest.
func push(t *testing.T, s *registrylab.Server, repository, tag, label string) string {
	t.Helper()
	digest, err := s.PushIndex(t.Context(), repository, tag, label)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func mustResolve(t *testing.T, r *registry.Resolver, q registry.Question) registry.Resolution {
	t.Helper()
	found, err := r.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// all asks all questions at the same time.
func all(t *testing.T, r *registry.Resolver, questions []registry.Question) []registry.Resolution {
	t.Helper()
	answers := make([]registry.Resolution, len(questions))
	var wg sync.WaitGroup
	for i, q := range questions {
		wg.Go(func() {
			found, err := r.Resolve(t.Context(), q)
			if err != nil {
				t.Error(err)
			}
			answers[i] = found
		})
	}
	wg.Wait()
	return answers
}

func platform(t *testing.T, text string) v1.Platform {
	t.Helper()
	p, err := registry.ParsePlatform(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
