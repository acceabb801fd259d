package run

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
)

// TestUnknownNamespacesThatAreChosen: a namespace that the labels no longer choose is
// not known any more, nor is what it asked for. Nothing may be written there.
func TestUnknownNamespacesThatAreChosen(t *testing.T) {
	t.Parallel()
	for _, selector := range []labels.Selector{nil, labels.SelectorFromSet(labels.Set{"team": "shop"})} {
		p := newParts(&Options{Reload: true, Scope: Scope{Selector: selector}, Now: time.Now}, nil, logr.Discard())
		if got, want := p.observes("shop"), selector != nil; got != want {
			t.Errorf("with the selector %v an unknown namespace is only observed: %t, want %t", selector, got, want)
		}
	}
}
