package registry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

// newClient makes one that trusts registries of the lab.
func newClient(o registry.Options, servers ...*registrylab.Server) *registry.Client {
	o.Hosts = map[string]registry.Host{}
	for _, s := range servers {
		o.Hosts[s.Address] = registry.Host{CA: s.CA}
	}
	return registry.NewClient(o)
}

// known are fixed credentials.
type known []keychain.Credential

func owner() known { return known{{Username: registrylab.User, Password: registrylab.Password}} }

// wanted is an image that is asked for.
type wanted struct {
	tagspec.Image
	as known
	// read asks for its platforms too.
	read bool
}

// ask makes a question about an image, such as "127.0.0.1:5000/app:1.*".
func ask(t *testing.T, as known, image string, args ...any) wanted {
	t.Helper()
	parsed, err := tagspec.ParseImage(fmt.Sprintf(image, args...))
	if err != nil {
		t.Fatal(err)
	}
	return wanted{Image: parsed, as: as}
}

type found struct{ Tag, Digest string }

// resolve finds the newest wanted tag and its digest. Each call asks the registry.
func resolve(ctx context.Context, c *registry.Client, w wanted) (found, error) {
	tag, exact := w.Spec.Exact()
	if !exact {
		tags, err := registry.Try(ctx, c, w.Repository, w.as, func(ctx context.Context, as keychain.Credential) (all []string, err error) {
			_, err = c.Tags(ctx, as, w.Repository, w.Spec.Prefix(), func(tag string) { all = append(all, tag) })
			return all, err
		})
		if err != nil {
			return found{}, err
		}
		tag, _ = w.Spec.Choose(tags)
	}
	digest, err := registry.Try(ctx, c, w.Repository, w.as, func(ctx context.Context, as keychain.Credential) (string, error) {
		return c.Digest(ctx, as, w.Repository, tag)
	})
	if err == nil && w.read {
		_, err = registry.Try(ctx, c, w.Repository, w.as, func(ctx context.Context, as keychain.Credential) (registry.Image, error) {
			image, err := c.Image(ctx, as, w.Repository, digest)
			if err != nil || image.Index {
				return image, err
			}
			return c.WithPlatform(ctx, as, w.Repository, image)
		})
	}
	return found{tag, digest}, err
}

func mustResolve(t *testing.T, c *registry.Client, w wanted) found {
	t.Helper()
	got, err := resolve(t.Context(), c, w)
	if err != nil {
		t.Fatal(err)
	}
	return got
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

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}
