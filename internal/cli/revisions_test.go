package cli

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// TestUnknownNamespacesThatAreChosen: a namespace that the labels no longer choose is
// not known any more, nor is what it asked for. Nothing may be written there.
func TestUnknownNamespacesThatAreChosen(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]bool{"team=shop": true, "": false} {
		p, err := newParts(&controllerOptions{reload: true, scope: scope, now: time.Now}, nil, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		if got := p.observes("shop"); got != want {
			t.Errorf("with --namespace-selector=%q an unknown namespace is only observed: %t, want %t", scope, got, want)
		}
	}
}
