package registry_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestPing: a registry that wants credentials answers, and one that is not there does not.
func TestPing(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	client := newClient(registry.Options{}, s)
	if err := client.Ping(t.Context(), s.Address); err != nil {
		t.Errorf("the registry is there: %v", err)
	}
	if err := client.Ping(t.Context(), "127.0.0.1:1"); registry.KindOf(err) != registry.Unreachable {
		t.Errorf("no registry is there: %v", err)
	}
}
