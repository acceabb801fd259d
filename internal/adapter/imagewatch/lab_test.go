package imagewatch_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

const somewhere = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(s[:])
}

// newResolver makes one that trusts registries of the lab.
func newResolver(o imagewatch.Options, servers ...*registrylab.Server) *imagewatch.Resolver {
	o.Registries.Hosts = map[string]registry.Host{}
	for _, s := range servers {
		o.Registries.Hosts[s.Address] = registry.Host{CA: s.CA}
	}
	if o.Interval == 0 {
		o.Interval = time.Hour
	}
	return imagewatch.New(o)
}

// known are fixed credentials.
type known []keychain.Credential

func (k known) Credentials(context.Context, tagspec.Repository) ([]keychain.Credential, error) {
	return k, nil
}

func owner() known { return known{{Username: registrylab.User, Password: registrylab.Password}} }

// ask makes a question about an image, such as "127.0.0.1:5000/app:1.*".
func ask(t *testing.T, as keychain.Source, image string, args ...any) imagewatch.Question {
	t.Helper()
	parsed, err := tagspec.ParseImage(fmt.Sprintf(image, args...))
	if err != nil {
		t.Fatal(err)
	}
	return imagewatch.Question{Repository: parsed.Repository, Spec: parsed.Spec, Credentials: as}
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

func mustResolve(t *testing.T, r *imagewatch.Resolver, q imagewatch.Question) imagewatch.Resolution {
	t.Helper()
	found, err := r.Resolve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// all asks all questions at the same time.
func all(t *testing.T, r *imagewatch.Resolver, questions []imagewatch.Question) []imagewatch.Resolution {
	t.Helper()
	answers := make([]imagewatch.Resolution, len(questions))
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

// run asks watched questions until the test ends.
func run(t *testing.T, r *imagewatch.Resolver) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// checkedAgain waits for the end of another check.
func checkedAgain(t *testing.T, w *imagewatch.Watch) {
	t.Helper()
	before := w.View().Asked
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		view := w.View()
		return view.Asked.After(before), fmt.Sprintf("there is no check after %s: %+v", before, view)
	})
}
