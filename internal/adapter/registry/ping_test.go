package registry_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

// TestPing: a registry that wants credentials answers, and one that is not there does not.
func TestPing(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{})
	resolver := newResolver(registry.Options{}, s)
	if err := resolver.Ping(t.Context(), s.Address); err != nil {
		t.Errorf("the registry is there: %v", err)
	}
	if err := resolver.Ping(t.Context(), "127.0.0.1:1"); registry.KindOf(err) != registry.Unreachable {
		t.Errorf("no registry is there: %v", err)
	}
}
